package main

import "bytes"

// configVersions checks the configurations that were applied: that they count from 1 without
// holes, that each can be read and is told of in the audit log, and that the last one is the
// current configuration.
func (v *verifier) configVersions() error {
	now := v.txn.cfg
	var before, last uint64 // number, and entry in the audit log
	for e, err := range scan(v.txn.Tx, tableConfigVersions.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableConfigVersions].entries++
		if len(e.Key) != 13 {
			v.stray(e.Key)
			continue
		}
		x, err := decodeEntry[configVersion](e)
		if err != nil {
			return err
		}
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
	}
	v.want[tableConfigVersions].entries = now.Version
	return nil
}

// versionNoted checks when a version was applied and by whom: what its entry in the audit log says,
// which comes after that of the version before.
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
