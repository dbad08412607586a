package main

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"sort"
)

// Each configuration that was applied is kept, so that what happened under it can be explained
// later (contract §22):
//
//	f org version → when it was applied and by whom, and the stored form of the config, compressed
//
// Versions count from 1 without holes; config.Version is the current one. An organization from
// before schema 12 begins with the configuration that it had then.

// A configVersion is a configuration that was applied.
type configVersion struct {
	Number uint64 // from the key

	AppliedAt instant // 0: before versions were kept
	By        creator
	AuditSeq  uint64 // of its first entry in the audit log; 0: before versions were kept
	Packed    []byte // the stored form, as flate writes it
}

func (v *configVersion) fields(c *coder) {
	c.instant(&v.AppliedAt)
	v.By.fields(c)
	c.uint(&v.AuditSeq)
	c.bytes(&v.Packed)
}

func versionKey(org uint32, version uint64) key { return orgKey('f', org).u64(version) }

// deflated compresses a text.
func deflated(text []byte) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		w.Write(text)
		err = w.Close()
	}
	if err != nil { // of the level, or of b
		panic(err)
	}
	return b.Bytes()
}

// config is the configuration as it was.
func (v *configVersion) config() (*config, error) {
	packed := bytes.NewReader(v.Packed)
	raw, err := io.ReadAll(flate.NewReader(packed))
	if err == nil && packed.Len() > 0 {
		err = errors.New("more than a compressed configuration")
	}
	if err != nil {
		return nil, err
	}
	return parseConfig(raw)
}

// versionAt reads a version of an organization's configuration; nil if there is none.
func versionAt(tx Tx, org uint32, version uint64) (*configVersion, error) {
	v, err := get[configVersion](tx, versionKey(org, version))
	if v != nil {
		v.Number = version
	}
	return v, err
}

// configAt is the configuration that a version is; nil if there is none.
func configAt(t *txn, version uint64) (*config, error) {
	if version == t.cfg.Version {
		return t.cfg, nil
	}
	v, err := versionAt(t.Tx, t.org, version)
	if v == nil || err != nil {
		return nil, err
	}
	cfg, err := v.config()
	if err != nil {
		return nil, atKey(versionKey(t.org, version), err)
	}
	return cfg, nil
}

// keepVersion keeps a configuration that is applied, under cfg.Version. Its first entry in the
// audit log has auditSeq.
func keepVersion(t *txn, cfg *config, auditSeq uint64) error {
	raw, err := cfg.stored()
	if err != nil {
		return err
	}
	return t.put(versionKey(cfg.Number, cfg.Version), &configVersion{AppliedAt: t.now, By: t.by, AuditSeq: auditSeq, Packed: deflated(raw)})
}

// versionOf is the version that an entry of the audit log tells of, which may be one of several
// that do; 0 if it is from before versions were kept.
func versionOf(t *txn, auditSeq uint64) (uint64, error) {
	var found *configVersion // the last one whose first entry is not later
	var failed error
	sort.Search(int(t.cfg.Version), func(i int) bool {
		v, err := versionAt(t.Tx, t.org, uint64(i)+1)
		if err != nil || v == nil {
			failed = err
			return true
		}
		if v.AuditSeq <= auditSeq {
			found = v
		}
		return v.AuditSeq > auditSeq
	})
	if found == nil || found.AuditSeq == 0 || failed != nil {
		return 0, failed
	}
	return found.Number, nil
}
