package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// encode writes a response's body: JSON as it reads best, with a line end.
func encode(v any) ([]byte, error) {
	if a, ok := v.(jsonAppender); ok {
		return append(a.appendJSON(make([]byte, 0, 640)), '\n'), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// A jsonAppender appends to b what encode would write for it by reflection,
// byte for byte. The answers that are asked for most do.
type jsonAppender interface {
	appendJSON(b []byte) []byte
}

func (v balance) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = v.CurrencyID.appendJSON(append(b, `,"currencyId":`...))
	b = v.PendingBalance.append(append(b, `,"pendingBalance":`...))
	b = v.LifetimePoints.append(append(b, `,"lifetimePoints":`...))
	b = appendJSONList(append(b, `,"expiringPoints":`...), v.ExpiringPoints)
	b = v.AsOf.appendJSON(append(b, `,"asOf":`...))
	return append(b, '}')
}

func (v expiring) appendJSON(b []byte) []byte {
	b = v.Amount.append(append(b, `{"amount":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	return append(b, '}')
}

func (v movementShape) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = v.LoyaltyProgramID.appendJSON(append(b, `,"loyaltyProgramId":`...))
	b = v.CurrencyID.appendJSON(append(b, `,"currencyId":`...))
	b = appendJSONString(append(b, `,"type":`...), v.Type)
	b = appendJSONString(append(b, `,"category":`...), v.Category)
	b = v.Amount.append(append(b, `,"amount":`...))
	b = appendJSONText(append(b, `,"comment":`...), v.Comment)
	b = v.AvailableFrom.appendJSON(append(b, `,"availableFrom":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = appendJSONID(append(b, `,"transactionId":`...), v.TransactionID)
	b = appendJSONID(append(b, `,"redemptionId":`...), v.RedemptionID)
	b = v.CreatedAt.appendJSON(append(b, `,"createdAt":`...))
	b = appendJSONList(append(b, `,"lots":`...), v.Lots)
	return append(b, '}')
}

func (v usedLot) appendJSON(b []byte) []byte {
	b = v.MovementID.appendJSON(append(b, `{"movementId":`...))
	b = v.Amount.append(append(b, `,"amount":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	return append(b, '}')
}

func (v saleShape) appendJSON(b []byte) []byte {
	b = appendJSONID(append(b, `{"id":`...), v.ID)
	b = v.TotalAmount.append(append(b, `,"totalAmount":`...))
	b = appendJSONString(append(b, `,"type":`...), v.Type)
	b = appendJSONString(append(b, `,"source":`...), v.Source)
	b = appendJSONText(append(b, `,"comment":`...), v.Comment)
	b = appendJSONText(append(b, `,"externalId":`...), v.ExternalID)
	b = v.CreatedAt.appendJSON(append(b, `,"createdAt":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = appendJSONString(append(b, `,"customerName":`...), v.CustomerName)
	b = appendJSONText(append(b, `,"customerEmail":`...), v.CustomerEmail)
	b = appendJSONText(append(b, `,"customerPhone":`...), v.CustomerPhone)
	b = appendJSONList(append(b, `,"items":`...), v.Items)
	b = v.PointsEarned.append(append(b, `,"pointsEarned":`...))
	b = v.PointsReversed.append(append(b, `,"pointsReversed":`...))
	b = v.PointsPending.append(append(b, `,"pointsPending":`...))
	b = v.PointsShortfall.append(append(b, `,"pointsShortfall":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = appendJSONList(append(b, `,"appliedRules":`...), v.AppliedRules)
	b = append(b, `,"tierChange":`...)
	if c := v.TierChange; c == nil {
		b = append(b, "null"...)
	} else {
		b = appendJSONText(append(b, `{"from":`...), c.From)
		b = appendJSONText(append(b, `,"to":`...), c.To)
		b = append(b, '}')
	}
	b = appendJSONID(append(b, `,"originalTransactionId":`...), v.OriginalTransactionID)
	return append(b, '}')
}

func (v item) appendJSON(b []byte) []byte {
	b = appendJSONString(append(b, `{"sku":`...), v.SKU)
	b = v.Price.append(append(b, `,"price":`...))
	b = v.Quantity.append(append(b, `,"quantity":`...))
	return append(b, '}')
}

func (v ruleShare) appendJSON(b []byte) []byte {
	b = v.RuleID.appendJSON(append(b, `{"ruleId":`...))
	b = appendJSONString(append(b, `,"name":`...), v.Name)
	b = v.Points.append(append(b, `,"points":`...))
	return append(b, '}')
}

func (l appendedList[T]) appendJSON(b []byte) []byte {
	b = appendJSONList(append(slices.Grow(b, 256*len(l.Data)), `{"data":`...), l.Data)
	b = strconv.AppendUint(append(b, `,"meta":{"currentPage":`...), l.Meta.CurrentPage, 10)
	b = strconv.AppendUint(append(b, `,"total":`...), l.Meta.Total, 10)
	b = strconv.AppendBool(append(b, `,"hasNextPage":`...), l.Meta.HasNextPage)
	b = strconv.AppendBool(append(b, `,"hasPreviousPage":`...), l.Meta.HasPreviousPage)
	return append(b, "}}"...)
}

func (v customerItem) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = appendJSONString(append(b, `,"name":`...), v.Name)
	b = appendJSONString(append(b, `,"status":`...), v.Status)
	b = v.LoyaltyProgramID.appendJSON(append(b, `,"loyaltyProgramId":`...))
	b = appendJSONText(append(b, `,"tierName":`...), v.TierName)
	return append(b, '}')
}

// appendJSONList appends a list; nil is null.
func appendJSONList[T jsonAppender](b []byte, list []T) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.appendJSON(b)
	}
	return append(b, ']')
}

func appendJSONID(b []byte, v *id) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return v.appendJSON(b)
}

func appendJSONText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendJSONString(b, *s)
}

// appendJSONString quotes a text as encoding/json does, which itself takes
// care of those with anything to escape.
func appendJSONString(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				return appendEscaped(b, s)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return appendEscaped(b, s)
		}
		i += size
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendEscaped(b []byte, s string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string and a buffer in memory cannot fail
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
