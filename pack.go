package main

import (
	"bytes"
	"encoding/binary"
)

// Every answer to a POST is kept for a day, packed to about a third of its
// size. Unpacking gives the same bytes again, for any answer.
//
// The text is cut at its quotation marks. Each piece becomes one byte that
// says what kind it is, and what that kind needs:
//
//	packedText    → any other piece: its length as a varint, then its bytes
//	packedID      → an id: 16 bytes
//	packedMoment  → a moment: its 17 digits as a number, 8 bytes
//	packedWord+n  → packedWords[n]
const (
	packedText = iota
	packedID
	packedMoment
	packedWord
)

// packedWords are the pieces that answers often contain. A piece is stored as its
// index here: add pieces only at the end, and never move or change one.
var packedWords = []string{
	// What stands between quoted names and values.
	"{", ":", ",", "}\n", ":null,", ":true,", ":false,", ":null}\n", ":[],", ":[{", "}],", "},{", ":null},{", ":null}],", ":[]}\n", ":[]},{", ":{", "},",

	"id", "customerId", "loyaltyProgramId", "currencyId", "type", "category", "amount", "comment", "availableFrom", "expiresAt",
	"balance", "transactionId", "redemptionId", "createdAt", "lots", "movementId",
	"totalAmount", "source", "externalId", "customerName", "customerEmail", "customerPhone", "items", "sku", "price", "quantity",
	"pointsEarned", "pointsReversed", "pointsPending", "pointsShortfall", "appliedRules", "ruleId", "name", "points", "tierChange",
	"from", "to", "originalTransactionId",
	"code", "productId", "rewardName", "pointsSpent", "status", "cancelledAt",
	"firstName", "lastName", "email", "phoneNumber", "tierName", "nextTierName", "pointsToNextTier", "pendingBalance",
	"lifetimePoints", "expiringPoints", "segmentIds", "totalSpent", "transactionsCount", "lastTransactionAt", "updatedAt",

	"Credit", "Debit", "Purchase", "Bonus", "Referral", "Campaign", "Loyalty", "Refund", "Interest", "AdminBonus", "Adjustment",
	"Redemption", "Fee", "Penalty", "AdminDeduction", "Exchange", "Return", "Api", "Active", "Completed", "Cancelled",

	":null},", ":{},", ":{}}\n", ":201,", ":200,",

	"createdBy", "actor", "Key", "registeredAt", "programs", "mergedInto", "birthDate", "attributes",
	"effect", "percent", "usedAt", "usedBy", "results", "transaction", "error", "message", "field", "statusCode",
	"Issued", "Used", "Amount", "Percent", "Product", "Merge",

	"redemptions",

	"payment", "amountDue", "holdId",

	"labels", "issued", "reason", "givenBy",

	"explanation", "rules", "applied", "reasons", "steps", "step", "multiplier", "mode",
	"tierProgress", "metric", "value", "missing", "fallsAt", "fallsTo", "PointsEarned",

	"marketing", "marketingAt",
	"reference", "movement",
}

var packedPlaces = func() map[string]byte {
	places := make(map[string]byte, len(packedWords))
	for n, word := range packedWords {
		places[word] = byte(packedWord + n)
	}
	return places
}()

// packedBytes finds the words of one byte, which are half of all pieces.
var packedBytes = func() (places [256]byte) {
	for n, word := range packedWords {
		if len(word) == 1 {
			places[word[0]] = byte(packedWord + n)
		}
	}
	return places
}()

// pack appends the packed text to b.
func pack(b, text []byte) []byte {
	for {
		end := bytes.IndexByte(text, '"')
		if end < 0 {
			return packPiece(b, text)
		}
		b, text = packPiece(b, text[:end]), text[end+1:]
	}
}

func packPiece(b, piece []byte) []byte {
	switch len(piece) {
	case 1:
		if place := packedBytes[piece[0]]; place != 0 {
			return append(b, place)
		}
	case 36:
		if u, ok := parseID(piece); ok {
			return append(append(b, packedID), u[:]...)
		}
	case len(momentForm):
		if digits, ok := momentDigits(piece); ok {
			return binary.BigEndian.AppendUint64(append(b, packedMoment), digits)
		}
	}
	if place, ok := packedPlaces[string(piece)]; ok {
		return append(b, place)
	}
	b = binary.AppendUvarint(append(b, packedText), uint64(len(piece)))
	return append(b, piece...)
}

// unpack returns the text that was packed.
func unpack(packed []byte) ([]byte, error) {
	text := make([]byte, 0, 4*len(packed))
	for r := (reader{b: packed}); ; text = append(text, '"') {
		switch kind := r.byte(); {
		case kind == packedText:
			text = append(text, r.take(r.uint())...)
		case kind == packedID:
			if u := r.take(16); u != nil {
				text = append(text, id(u).String()...)
			}
		case kind == packedMoment:
			if v := r.take(8); v != nil {
				text = appendMoment(text, binary.BigEndian.Uint64(v))
			}
		case int(kind-packedWord) < len(packedWords):
			text = append(text, packedWords[kind-packedWord]...)
		default:
			r.fail()
		}
		if len(r.b) == 0 {
			return text, r.err()
		}
	}
}

const momentForm = "0000-00-00T00:00:00.000Z"

// momentDigits reads the digits of a piece as long as momentForm.
func momentDigits(piece []byte) (digits uint64, ok bool) {
	for i, c := range piece {
		switch {
		case momentForm[i] != '0' && c != momentForm[i], momentForm[i] == '0' && (c < '0' || c > '9'):
			return 0, false
		case momentForm[i] == '0':
			digits = 10*digits + uint64(c-'0')
		}
	}
	return digits, true
}

// appendMoment appends the moment whose digits momentDigits read.
func appendMoment(b []byte, digits uint64) []byte {
	b = append(b, momentForm...)
	s := b[len(b)-len(momentForm):]
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '0' {
			s[i] += byte(digits % 10)
			digits /= 10
		}
	}
	return b
}
