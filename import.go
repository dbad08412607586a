package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Importing what a shop has from before: customers, and sales with their own dates, by which expiry,
// tiers and statistics go; also points, given or taken now. Within a transaction each record goes
// in whole or not at all, and a wrong record does not stop the others. Records that exist already
// stay as they are, so that a file can be imported again (contract §10).

type importRequest struct {
	Org  string      `json:"org"`
	Kind string      `json:"kind"` // customers, sales or points
	Rows []importRow `json:"rows"`

	Import string `json:"import"` // the import that the batch belongs to

	Program   string `json:"program"`   // key of the program that points come into; "": the default one
	NoWelcome bool   `json:"noWelcome"` // no sign-up rules

	SamePerson bool `json:"samePerson"` // one equal contact is enough, whatever else differs
}

type importEnd struct {
	Org    string `json:"org"`
	Import string `json:"import"`
}

// An importPlace is what the cells of a file mean in an organization.
type importPlace struct {
	Country string `json:"country"` // of phones
	Zone    string `json:"zone"`    // of moments
	Unique  bool   `json:"unique"`  // purchases with one externalId are one sale, whatever their day

	Currency string `json:"currency"` // of amounts
}

func (a *admin) importPlace(ctx context.Context, in importEnd) (importPlace, error) {
	return look(ctx, a, in.Org, func(t *txn) (importPlace, error) {
		o := t.cfg.Organization
		return importPlace{o.Profile.Country, o.Settings.Timezone, t.cfg.uniqueExternalIDs(), o.Settings.Currency}, nil
	})
}

func (a *admin) importRows(ctx context.Context, in importRequest) ([]importOutcome, error) {
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return nil, err
	}
	now := instantOf(a.engine.now())
	var (
		outcomes []importOutcome
		parts    []*importPart
		last     *importPart
		panicked any
	)
	holdSweep := func() { a.engine.holdSweep(ctx, in.Import) }
	// collect waits for the oldest part under way.
	collect := func() error {
		p := parts[0]
		parts = parts[1:]
		<-p.done
		outcomes = append(outcomes, p.outcomes...)
		if panicked == nil {
			panicked = p.panicked
		}
		return p.err
	}
	for rows := range slices.Chunk(in.Rows, importPartRows) {
		if len(parts) == 2 {
			err = collect()
		}
		if err != nil {
			break
		}
		holdSweep()
		part := in
		part.Rows = rows
		last = a.engine.beginPart(ctx, last, org, now, part)
		parts = append(parts, last)
	}
	for len(parts) > 0 {
		err = cmp.Or(err, collect())
	}
	holdSweep()
	if panicked != nil { // on a part's goroutine: pass it on
		panic(panicked)
	}
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// importPartRows is how many rows go into one transaction. It delays others by some
// hundredths of a second.
const importPartRows = 500

// An importPart is the part of an import that is one transaction.
type importPart struct {
	done     chan struct{} // closed when the fields below are final
	outcomes []importOutcome
	err      error
	panicked any
	reached  atomic.Pointer[counters] // after its rows, stored or not; nil: the rows have not run
}

// errPartBefore fails a part whose rows may need the rows of the part before.
var errPartBefore = errors.New("import: the rows before these are not stored")

// failed reports whether the part is known not to be in the store.
func (p *importPart) failed() bool {
	select {
	case <-p.done:
		return p.err != nil
	default:
		return false
	}
}

// isIn reports whether a state with these counters includes the part.
func (p *importPart) isIn(n *counters) bool {
	reached := p.reached.Load()
	return reached != nil && !p.failed() && n.Customers >= reached.Customers && n.Sales >= reached.Sales && n.Movements >= reached.Movements
}

// beginPart starts to import rows. It returns once their transaction has begun or failed,
// so that the next part runs after this one, even while this one is being stored. A part
// fails if the state it runs on lacks the part before: a return whose purchase is missing
// would be imported as a return without a purchase, with no error.
func (e *engine) beginPart(ctx context.Context, before *importPart, org uint32, now instant, in importRequest) *importPart {
	p := &importPart{done: make(chan struct{}), err: errUnavailable}
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	s := e.seed()
	go func() {
		defer begin()
		defer close(p.done)
		defer func() { p.panicked = recover() }()
		p.outcomes, p.err = updateStore(ctx, e.store, func(tx Tx) ([]importOutcome, error) {
			begin()
			p.reached.Store(nil) // of an earlier run
			batch := newOverlay(tx)
			t, err := e.inTxn(batch, org, now, s)
			if err != nil {
				return nil, err
			}
			t.by = creator{Type: byImport, Actor: operatorOf(ctx)}
			n, err := t.count()
			if err != nil {
				return nil, err
			}
			if before != nil && !before.isIn(n) {
				return nil, errPartBefore
			}
			outcomes, err := importRows(t, in)
			if err != nil {
				return nil, err
			}
			if n, err = t.count(); err != nil {
				return nil, err
			}
			p.reached.Store(new(*n))
			return outcomes, batch.flush(tx)
		})
		if p.err == nil {
			e.clock.Wrote(now)
		}
	}()
	<-begun
	return p
}

// importRows imports rows. What a row that fails has written is dropped.
func importRows(t *txn, in importRequest) ([]importOutcome, error) {
	t.importing, t.noWelcome = true, in.NoWelcome
	into, err := programFor(t, in.Program)
	if err != nil {
		return nil, err
	}
	outcomes := make([]importOutcome, len(in.Rows))
	err = t.eachRow(len(in.Rows), func(i int) (bool, error) {
		r := newRowReader(in.Rows[i])
		o, err := importOne(t, &in, into, r)
		if err = r.take(err); err != nil {
			return false, err
		}
		if o.Faults = append(r.told(), o.Faults...); len(o.Faults) > 0 || r.err != nil {
			outcomes[i] = importOutcome{Faults: o.Faults}
			return false, nil
		}
		outcomes[i] = o
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if err := t.commit(); err != nil {
		return nil, err
	}
	return outcomes, indexImported(t, importIndexed)
}

// importOne imports a row, or returns some of its faults: r has the others.
func importOne(t *txn, in *importRequest, into *program, r *rowReader) (importOutcome, error) {
	switch in.Kind {
	case importCustomers:
		return importCustomer(t, r, into, in.SamePerson)
	case importPoints:
		return importMovement(t, r, into, in.SamePerson)
	}
	return importSale(t, r, in.SamePerson)
}

// indexImported adds customers that are not in the search index yet, if there are
// at least wait of them.
func indexImported(t *txn, wait uint64) error {
	n, err := t.count()
	if err != nil {
		return err
	}
	done, err := t.search.indexed()
	if err != nil || n.Customers-done < wait {
		return err
	}
	return t.search.indexUntil(n.Customers - n.Customers%gramGroup)
}

// importDone ends an import: it adds the last customers to the search index and
// brings the accounts up to today.
func (a *admin) importDone(ctx context.Context, in importEnd) (struct{}, error) {
	a.engine.endImport(ctx, in.Import)
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return struct{}{}, err
	}
	_, err = write(ctx, a.engine, org, instantOf(a.engine.now()), func(t *txn) (struct{}, error) {
		return struct{}{}, indexImported(t, gramGroup)
	})
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, a.engine.sweepBy(ctx, a.engine.commandTime)
}

// importSale registers a sale at the date that its row gives. Unless samePerson is true, a
// row whose other contact differs from the customer's is wrong.
func importSale(t *txn, r *rowReader, samePerson bool) (o importOutcome, err error) {
	s, at := saleOf(t, r)
	w := whose{id: [2]string{"customerId", r.row.ID}, external: [2]string{"customerExternalId", r.row.Customer}}
	if _, ok := parseID(trimBlanks(r.row.ID)); !ok && r.row.Customer == "" { // another system's "customer ID"
		w.id[1], w.external = "", [2]string{"customerId", r.row.ID}
	}
	c, err := w.customer(t, r)
	if c == nil || err != nil {
		return o, err
	}
	s.Customer = c.ID
	if r.err == nil {
		t.now = at // the sale happens at its own date
		known, err := alreadyImported(t, s)
		if err != nil || known {
			return o, err
		}
	}
	if !samePerson {
		if o.Faults, err = w.doubts(t, r, c); err != nil || len(o.Faults) > 0 {
			return o, err
		}
	}
	if r.err != nil {
		return o, nil
	}
	if s.Type == typeReturn {
		if s.Original, err = purchaseByID(t, c, s.ExternalID); err != nil {
			return o, err
		}
	}
	_, _, err = t.sales.registerOf(c, s)
	o.Added = err == nil
	return o, err
}

// saleOf reads what a row says of a sale, except its customer, and the sale's moment.
func saleOf(t *txn, r *rowReader) (s newSale, at instant) {
	s.Source = sourceImport
	s.ExternalID, _ = r.clean("externalId", r.row.ExternalID, maxExternalID, codeInvalidField)
	if s.ExternalID == "" {
		r.invalid("externalId", "es requerido")
	}
	at = pastMoment(t, r.input, "createdAt", r.row.CreatedAt)
	s.Type = choice(r.input, r.row.Type, r.row.Type != "", "type", codeTypeInvalid, []string{typePurchase, typeReturn})
	if s.Total = spelled(r.input, "totalAmount", r.row.Total); s.Total <= 0 {
		r.fail(newError(codeTotalAmountInvalid).on("totalAmount"))
	}
	s.Items = importedItems(r.input, r.row.Items)
	s.Labels = importedLabels(r.input, s.Type, r.row.Labels)
	s.Comment, _ = r.clean("comment", r.row.Comment, maxComment, codeCommentTooLong)
	return s, at
}

// importedLabels reads the labels of an imported sale. A fault is of the label's own column.
func importedLabels(in input, saleType string, list []label) saleLabels {
	sound := true
	for _, l := range list {
		column := labelColumn + l.Name
		if saleType == typeReturn {
			in.invalid(column, "solo vale en una compra")
			sound = false
		} else if _, err := newSaleLabels(l); err != nil {
			in.fail(newError(codeLabelsInvalid).on(column))
			sound = false
		}
	}
	if !sound {
		return nil
	}
	labels, err := newSaleLabels(list...)
	in.fail(err)
	return labels
}

func importedItems(in input, rows []importItem) (items []item) {
	if len(rows) > maxItems {
		in.fail(invalidField("", "la venta no puede tener más de 500 artículos"))
		return nil
	}
	for i, r := range rows {
		in.sent = sent{list: "items", index: i}
		sku, present := in.clean("sku", r.SKU, maxSKU, codeInvalidField)
		if !present {
			in.invalid("sku", "es requerido")
		}
		it := item{SKU: sku}
		if it.Quantity = spelled(in, "quantity", r.Quantity); it.Quantity <= 0 {
			in.invalid("quantity", "debe ser mayor a 0")
		}
		if it.Price = spelled(in, "price", r.Price); it.Price < 0 {
			in.invalid("price", "debe ser mayor o igual a 0")
		}
		items = append(items, it)
	}
	return items
}

// purchaseByID returns the id of the customer's purchase whose id is given as an
// externalId, or nil. Exports name a purchase without an externalId that way.
func purchaseByID(t *txn, c *customer, externalID string) (*id, error) {
	own, _ := parseID(externalID)
	seq, found, err := getUint(t.Tx, orgKey('T', t.org).id(own))
	if err != nil || !found {
		return nil, err
	}
	p, err := t.sales.at(seq)
	if err != nil || p.Type != typePurchase {
		return nil, err
	}
	if theirs, err := t.merges.owns(c, p.Customer); err != nil || !theirs {
		return nil, err
	}
	return &own, nil
}

// alreadyImported reports whether the store has a sale: one of the same customer,
// type, moment and content under the same externalId, its own or the one that an
// export gives it; or a purchase of the same day and total that came by the API.
// The same moment with other content is an error, unless that purchase was wholly returned,
// and so is the same sale imported for another customer. A purchase that was wholly returned
// is there too: a file that is imported again does not register it again.
func alreadyImported(t *txn, s newSale) (bool, error) {
	namesakes, err := namesakes(t, s)
	if err != nil {
		return false, err
	}
	if s.Type == typePurchase && t.cfg.uniqueExternalIDs() {
		return alreadyKnown(t, namesakes, s)
	}
	differs := false
	for _, other := range namesakes {
		sameDay := dayOf(other.CreatedAt, t.cfg.zone) == dayOf(t.now, t.cfg.zone)
		same := other.CreatedAt == t.now && other.Total == s.Total && slices.Equal(other.Items, s.Items)
		owner, err := t.merges.ownerID(other.Customer)
		if err != nil {
			return false, err
		}
		switch {
		case other.Type != s.Type:
		case owner != s.Customer: // perhaps found then by a phone that is another's now
			differs = differs || same && other.Source == sourceImport
		case s.Type == typePurchase && other.Source != sourceImport && sameDay && other.Total == s.Total:
			return true, nil
		case same:
			return true, nil
		case other.CreatedAt == t.now && !(other.Type == typePurchase && other.whollyReturned()):
			differs = true
		}
	}
	if differs {
		return false, invalidField("externalId", "ya se registró con otros datos")
	}
	return false, nil
}

// alreadyKnown is alreadyImported for a purchase whose externalId is Unique.
func alreadyKnown(t *txn, namesakes []*sale, s newSale) (known bool, err error) {
	for _, other := range namesakes {
		if other.Type != typePurchase {
			continue
		}
		if same, err := t.sales.isSame(other, s); same || err != nil {
			return same, err
		}
		// The very sale that was imported, undone, is perhaps found by a phone that is another's now.
		imported := other.Source == sourceImport && other.CreatedAt == t.now && other.Total == s.Total && slices.Equal(other.Items, s.Items)
		if imported || !other.whollyReturned() {
			err = newError(codeExternalIDConflict).on("externalId")
		}
	}
	return false, err
}

// namesakes lists the sales under an externalId: sales that have it, the sale whose id it
// is, and returns of the same moment whose name in an export it is.
func namesakes(t *txn, s newSale) (list []*sale, err error) {
	take := func(seq uint64) error {
		other, err := t.sales.at(seq)
		if err == nil {
			list = append(list, other)
		}
		return err
	}
	if own, ok := parseID(s.ExternalID); ok {
		seq, found, err := getUint(t.Tx, orgKey('T', t.org).id(own))
		if err == nil && found {
			err = take(seq)
		}
		if err != nil {
			return nil, err
		}
	}
	prefix := t.sales.externalKey(s.ExternalID)
	for e, err := range scan(t.Tx, prefix, true) {
		if err == nil {
			err = take(uintIn(e.Key[len(prefix):]))
		}
		if err != nil {
			return nil, err
		}
	}
	list = slices.DeleteFunc(list, func(o *sale) bool { return o.ExternalID != s.ExternalID && o.ID.String() != s.ExternalID })
	if s.Type != typeReturn {
		return list, nil
	}
	prefix = orgKey('h', t.org).instant(t.now)
	for e, err := range scan(t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		if e.Value[0] != kindReturn {
			continue
		}
		other, err := t.sales.at(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, err
		}
		exported, err := exportName(t, other)
		if err != nil {
			return nil, err
		}
		if exported == s.ExternalID {
			list = append(list, other)
		}
	}
	return list, nil
}
