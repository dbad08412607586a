package main

// auditLog checks an organization's audit log: that its entries are a chain without
// holes, and what its index must hold.
func (v *verifier) auditLog() error {
	now := ledgerState{Organization: v.txn.cfg.Organization.Slug}
	earlier := v.earlierStates()
	v.meetAudit(earlier, &now)
	var last instant
	for e, err := range scan(v.txn.Tx, tableAudit.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableAudit].entries++
		if len(e.Key) != 13 {
			v.stray(e.Key)
			continue
		}
		x, err := decodeEntry[auditEntry](e)
		if err != nil {
			return err
		}
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
	}
	for _, s := range earlier {
		if s.AuditEntries > now.AuditEntries {
			v.problem("la auditoría tenía %d entradas y ahora tiene %d", s.AuditEntries, now.AuditEntries)
		}
	}
	v.ledger = now
	return nil
}

// meetAudit compares the log so far with what it was when it was as long.
func (v *verifier) meetAudit(earlier []ledgerState, now *ledgerState) {
	for _, s := range earlier {
		if s.AuditEntries == now.AuditEntries && s.AuditDigest != now.AuditDigest {
			v.problem("la auditoría no es la continuación de la que tenía %d entradas", s.AuditEntries)
		}
	}
}
