package main

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"unicode/utf8"

	"sello/internal/password"
)

// Checks of what is kept beside customers: people of the panel, requests to undo, the audit log,
// the configurations that were applied, events and webhooks.

// people checks the users of the panel: that their memberships, sessions and invitations are
// of users and organizations that exist, and what the indexes of them must hold.
func (v *verifier) people(organizations uint32) error {
	users, err := v.users()
	if err != nil {
		return err
	}
	members := map[uint32][]id{}
	err = eachRecord(v, tableMemberships, newKey('M'), func(e Entry, m *membership) error {
		org, of := uint32In(e.Key[1:]), id(e.Key[5:])
		what := subject{kind: "miembro", id: of}
		if !users[of] || !m.Role.known() {
			v.problem("%v: no hay tal usuario o rol", what)
		}
		members[org] = append(members[org], of) // in order
		return v.has(tableMembershipsOf, membershipOfKey(of, org), nil, what)
	})
	if err == nil {
		err = v.sessions(members)
	}
	if err != nil {
		return err
	}
	return v.invitationsOf(users, organizations)
}

// users reads all that lies under users, and returns who there is.
func (v *verifier) users() (users map[id]bool, err error) {
	users = map[id]bool{}
	for e, err := range scan(v.txn.Tx, newKey('U'), false) {
		if err != nil {
			return nil, err
		}
		t, ok := tableOf(e.Key)
		if !ok {
			v.stray(e.Key)
			continue
		}
		of := id(e.Key[1:17])
		what := subject{kind: "usuario", id: of}
		if t != tableUsers && !users[of] { // the user's own record comes first
			v.problem("%v: falta, y hay %s", what, t.inWords())
		}
		switch t {
		case tableUsers:
			users[of] = true
			err = v.user(e, of, what)
		case tableSecondFactors:
			_, err = decodeEntry[secondFactor](e)
		case tableDevices:
			_, err = decodeEntry[device](e)
		default:
			v.have[t].add(v.hash(e.Key, e.Value))
		}
		if err != nil {
			return nil, err
		}
	}
	return users, nil
}

func (v *verifier) user(e Entry, of id, what subject) error {
	u, err := decodeEntry[user](e)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", "es", "en"}, u.Language) || !slices.Contains([]string{"", "light", "dark"}, u.Theme) ||
		u.Password.Iterations <= 0 || len(u.Password.Salt) != password.SaltSize || len(u.Password.Sum) != password.HashSize {
		v.problem("%v: su idioma, su tema o su contraseña no son válidos", what)
	}
	return v.has(tableEmails, emailKey(u.Email), of[:], what)
}

// sessions checks that each session is of a member of the organization that it is in.
func (v *verifier) sessions(members map[uint32][]id) error {
	return eachRecord(v, tableSessions, newKey('S'), func(e Entry, s *session) error {
		what := subject{kind: "sesión de", id: s.User}
		_, found := slices.BinarySearchFunc(members[s.Org], s.User, compareIDs)
		if !found || s.Kind != sessionFull && s.Kind != sessionHalf {
			v.problem("%v: no es de la organización %d", what, s.Org)
		}
		return v.has(tableUserSessions, sessionOfKey(s.User, [32]byte(e.Key[1:])), nil, what)
	})
}

func (v *verifier) invitationsOf(users map[id]bool, organizations uint32) error {
	return eachRecord(v, tableInvitations, newKey('V'), func(e Entry, i *invitation) error {
		what := subject{kind: "invitación", id: i.ID}
		joins, resets := i.Kind == invitationJoin && i.Role.known(), i.Kind == invitationReset && users[i.User]
		if i.Org == 0 || i.Org > organizations || !joins && !resets {
			v.problem("%v: no lleva a ninguna parte", what)
		}
		return v.has(tableInvitationList, invitationListKey(i.Org, i.ID), e.Key[1:], what)
	})
}

func (v *verifier) undoRequests() error {
	return eachRecord(v, tableUndoRequests, tableUndoRequests.in(v.txn.org), func(e Entry, r *undoRequest) error {
		u := id(e.Key[len(e.Key)-16:])
		fits, err := v.undoRequestFits(r, u)
		if known, is := errors.AsType[*apiError](err); is && known.code.status == http.StatusNotFound {
			fits, err = false, nil
		}
		if err == nil && !fits {
			v.problem("petición de deshacer %s: no puede ser lo que dice", u)
		}
		return err
	})
}

// undoRequestFits reports whether a request agrees with the purchase or redemption that it is about,
// which was not undone, and whose customer was not erased.
func (v *verifier) undoRequestFits(r *undoRequest, u id) (bool, error) {
	s, err := v.txn.rewards.undoSubject(u, r.Redemption)
	if err != nil {
		return false, err
	}
	c, err := v.txn.merges.owner(s.customer)
	if err != nil {
		return false, err
	}
	return !s.undone && r.Customer == s.customer && c.Status != statusErased && r.By.ID == s.by.ID && r.At >= s.at && utf8.RuneCountInString(r.Reason) <= maxUndoReason, nil
}

// auditLog checks an organization's audit log: that its entries are a chain without
// holes, and what its index must hold.
func (v *verifier) auditLog() error {
	now := ledgerState{Organization: v.txn.cfg.Organization.Slug}
	earlier := v.earlierStates()
	v.meetAudit(earlier, &now)
	var last instant
	err := eachRecord(v, tableAudit, tableAudit.in(v.txn.org), func(e Entry, x *auditEntry) error {
		x.Seq = uintIn(e.Key[5:])
		v.want[tableAudit].entries++
		if now.AuditEntries++; x.Seq != now.AuditEntries {
			v.problem("auditoría: en lugar de la entrada %d está la %d", now.AuditEntries, x.Seq)
		}
		record := e.Value[:len(e.Value)-len(x.Hash)]
		if x.Hash != hashMovement(now.AuditDigest, v.txn.org, x.Seq, record) {
			v.problem("auditoría: la entrada %d no es la que se escribió tras la anterior", x.Seq)
		}
		now.AuditDigest = x.Hash
		if x.At < last && x.Action != auditClockAccepted {
			v.problem("auditoría: la entrada %d es anterior a la que la precede", x.Seq)
		}
		last = x.At
		v.meetAudit(earlier, &now)
		for set := range x.sets(v.txn.org) {
			v.inSet(tableAuditIndex, set, x.Seq)
		}
		return nil
	})
	for _, s := range earlier {
		if s.AuditEntries > now.AuditEntries {
			v.problem("la auditoría tenía %d entradas y ahora tiene %d", s.AuditEntries, now.AuditEntries)
		}
	}
	v.ledger = now
	return err
}

// meetAudit compares the log so far with what it was when it was as long.
func (v *verifier) meetAudit(earlier []ledgerState, now *ledgerState) {
	for _, s := range earlier {
		if s.AuditEntries == now.AuditEntries && s.AuditDigest != now.AuditDigest {
			v.problem("la auditoría no es la continuación de la que tenía %d entradas", s.AuditEntries)
		}
	}
}

// configVersions checks the configurations that were applied: that they count from 1 without
// holes, that each can be read and is told of in the audit log, and that the last one is the
// current configuration.
func (v *verifier) configVersions() error {
	now := v.txn.cfg
	var before, last uint64 // number, and entry in the audit log
	v.want[tableConfigVersions].entries = now.Version
	return eachRecord(v, tableConfigVersions, tableConfigVersions.in(v.txn.org), func(e Entry, x *configVersion) error {
		if x.Number = uintIn(e.Key[5:]); x.Number != before+1 {
			v.problem("versiones de la configuración: tras la %d está la %d", before, x.Number)
		}
		if err := v.versionNoted(x, last); err != nil {
			return err
		}
		before, last = x.Number, x.AuditSeq
		cfg, err := x.config()
		switch {
		case err != nil || cfg.Version != x.Number || cfg.ID != now.ID:
			v.problem("versión %d de la configuración: no se puede leer, o es otra", x.Number)
		case cfg.Version == now.Version:
			current := *now
			current.Recount = cfg.Recount // which ends
			kept, err := cfg.stored()
			if err != nil {
				return err
			}
			if should, err := current.stored(); err != nil || !bytes.Equal(kept, should) {
				v.problem("versión %d de la configuración: no es la configuración actual", x.Number)
			}
		}
		return nil
	})
}

// versionNoted checks when and by whom a version was applied: its entry in the audit log says so, and
// comes after the entry of the version before.
func (v *verifier) versionNoted(x *configVersion, last uint64) error {
	if x.AuditSeq == 0 && x.Number == 1 { // it was there before versions were
		if x.AppliedAt != 0 || x.By != (creator{Type: bySystem}) {
			v.problem("versión 1 de la configuración: de antes de las versiones, y con fecha o autor")
		}
		return nil
	}
	told, err := get[auditEntry](v.txn.Tx, v.txn.audit.key(x.AuditSeq))
	if err != nil {
		return err
	}
	at := x.AppliedAt
	if x.AuditSeq > 1 { // an entry is not before the last one
		before, err := get[auditEntry](v.txn.Tx, v.txn.audit.key(x.AuditSeq-1))
		if err != nil {
			return err
		}
		if before != nil {
			at = max(at, before.At)
		}
	}
	if x.AuditSeq <= last || told == nil || told.Action != auditConfigurationApplied || told.By != x.By || told.At != at {
		v.problem("versión %d de la configuración: la entrada %d de la auditoría no es la suya", x.Number, x.AuditSeq)
	}
	return nil
}

// eventFeed checks the feed of an organization: that what is kept of it has no holes and ends
// with the last event that was told, and that its events refer to what there is.
func (v *verifier) eventFeed() error {
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	last := n.Dropped
	for e, err := range scan(v.txn.Tx, tableEvents.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableEvents].entries++
		if len(e.Key) != 13 {
			v.stray(e.Key)
			continue
		}
		v.want[tableEvents].entries++
		list, err := eventsIn(e)
		if err != nil {
			return err
		}
		if first := uintIn(e.Key[5:]); first != last+1 || len(list) == 0 {
			v.problem("eventos: tras el %d está el %d", last, first)
		}
		for i := range list {
			last = list[i].Seq
			known := list[i].refersTo(n, v.txn.cfg)
			switch u := list[i].of(); list[i].Kind {
			case eventPointsHeld, eventPointsReleased:
				_, known, err = v.txn.Get(v.txn.points.holdKey(u))
			case eventTicketCreated, eventTicketClaimed, eventTicketCancelled:
				_, known, err = v.txn.Get(v.txn.tickets.key(u))
			}
			if err != nil {
				return err
			}
			if !known {
				v.problem("eventos: el %d (%s) es de algo que no existe", last, eventKinds[list[i].Kind].name)
			}
		}
	}
	equal(v, subject{kind: "contador de eventos"}, "", n.Events, last)
	return v.webhooks(n)
}

// webhooks checks that each webhook, and nothing else, has a state, and that the state's event
// exists.
func (v *verifier) webhooks(n *counters) error {
	for e, err := range scan(v.txn.Tx, tableWebhooks.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableWebhooks].entries++
		s, err := decodeEntry[webhookState](e)
		if err != nil {
			return err
		}
		hook := string(e.Key[5:])
		if v.txn.cfg.webhook(hook) == nil {
			v.stray(e.Key)
			continue
		}
		if s.Sent > n.Events {
			v.problem("webhook %q: su último evento, %d, no existe", hook, s.Sent)
		}
	}
	v.want[tableWebhooks].entries = uint64(len(v.txn.cfg.Webhooks))
	return nil
}

func (e *event) refersTo(n *counters, cfg *config) bool {
	in := func(ref, total uint64) bool { return 0 < ref && ref <= total }
	program := func(ref uint64) bool { return ref <= 1<<32-1 && cfg.programNumber(uint32(ref)) != nil }
	switch e.Kind {
	case eventCustomerCreated, eventCustomerUpdated, eventCustomerErased:
		return in(e.Refs[0], n.Customers)
	case eventCustomerMerged:
		return in(e.Refs[0], n.Customers) && in(e.Refs[1], n.Customers)
	case eventPointsAvailable:
		return in(e.Refs[0], n.Movements) && in(e.Refs[1], n.Customers)
	case eventPointsExpiring, eventTierChanged, eventTierExpiring:
		return in(e.Refs[0], n.Customers) && program(e.Refs[1])
	case eventTransactionCreated:
		return in(e.Refs[0], n.Sales)
	case eventRedemptionCreated, eventRedemptionUsed, eventRedemptionCancelled, eventRedemptionExpired:
		return in(e.Refs[0], n.Redemptions)
	case eventConfigurationApplied:
		return in(e.Refs[0], n.Audit)
	case eventCardIssued, eventCardRevoked:
		return in(e.Refs[0], n.Customers) && in(e.Refs[1], n.Audit)
	}
	return in(e.Refs[0], n.Movements)
}
