package main

import (
	"cmp"
	"slices"
)

// With externalIds "Unique" a till that was offline can send its queue again, however
// late: what it sent before is recognized by its values and not registered again
// (contract §14). Nothing is kept for that: the index of externalIds finds a purchase,
// and that of times a return, which has the externalId of its purchase.

// mostNamesakes is how many sales with one externalId are compared, newest first. More
// than one can only be from before the setting was Unique.
const mostNamesakes = 1000

// knownSale returns the sale that is sent again; nil if it is new. A purchase whose
// externalId is known with other values is external_id_conflict.
func (t *txn) knownSale(in newSale) (*sale, error) {
	switch {
	case !t.cfg.uniqueExternalIDs():
		return nil, nil
	case in.Type == typeReturn && in.OccurredAt != 0:
		return t.knownReturn(in)
	case in.Type != typePurchase || in.ExternalID == "":
		return nil, nil
	}
	namesakes, err := t.purchasesCalled(in.ExternalID)
	if err != nil || len(namesakes) == 0 {
		return nil, err
	}
	for _, known := range namesakes {
		if same, err := t.isSame(known, in); same || err != nil {
			return known, err
		}
	}
	if err := t.checkOccurred(in.OccurredAt); err != nil {
		return nil, err
	}
	if _, err := t.customer(in.Customer); err != nil {
		return nil, err
	}
	return nil, newError(codeExternalIDConflict).on("externalId").with("transactionId", namesakes[0].ID)
}

// purchasesCalled returns the purchases with an externalId, newest first.
func (t *txn) purchasesCalled(externalID string) (list []*sale, err error) {
	prefix, looked := t.externalKey(externalID), 0
	for e, err := range scan(t.Tx, prefix, true) {
		if err != nil {
			return nil, err
		}
		if looked++; looked > mostNamesakes {
			break
		}
		s, err := t.saleAt(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, err
		}
		if s.Type == typePurchase && s.ExternalID == externalID {
			list = append(list, s)
		}
	}
	return list, nil
}

// knownReturn returns the return that is sent again; nil if it is new. One that was sent
// as of later than it came has an earlier CreatedAt.
func (t *txn) knownReturn(in newSale) (*sale, error) {
	prefix := orgKey('h', t.org)
	first := slices.Clone(prefix).instant(in.OccurredAt - aheadSlack)
	for e, err := range t.Scan(first, slices.Clone(prefix).instant(in.OccurredAt).after(), true) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 5 {
			return nil, unreadable(e.Key)
		}
		if e.Value[0] != kindReturn {
			continue
		}
		s, err := t.saleAt(uintIn(e.Key[len(prefix)+8:]))
		if err != nil {
			return nil, err
		}
		if cmp.Or(s.OccurredAt, s.CreatedAt) != in.OccurredAt || !s.isOfPurchase(in) {
			continue
		}
		if same, err := t.isSame(s, in); same || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// isOfPurchase reports whether a return is of the purchase that in names.
func (s *sale) isOfPurchase(in newSale) bool {
	if in.Original != nil {
		return s.Previous == *in.Original
	}
	if in.ExternalID == "" {
		return s.ExternalID == "" && s.Previous == (id{}) // of none
	}
	return s.ExternalID == in.ExternalID
}

// isSame reports whether a sale has the customer, amount and items of in.
func (t *txn) isSame(s *sale, in newSale) (bool, error) {
	if s.Total != in.Total || !slices.Equal(s.Items, in.Items) {
		return false, nil
	}
	had, err := t.ownerID(s.Customer)
	if err != nil {
		return false, err
	}
	has, err := t.ownerID(in.Customer)
	return had == has, err
}
