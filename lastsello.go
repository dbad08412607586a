package main

import (
	"context"
	"errors"
)

// A file says which sello has served or migrated it last, so that an earlier one that
// refuses it can say which one reads it:
//
//	v 'w' → version, as sello version prints it
//
// It is missing where only builds without a version wrote the file.

func writerKey() key { return newKey('v').byte('w') }

// fileWriter returns the version of the sello that wrote the store last; "" if unknown.
func fileWriter(tx Tx) (string, error) {
	value, _, err := tx.Get(writerKey())
	return string(value), err
}

// sign writes this sello's version, unless it is there. A store that takes no writes now is
// signed another time.
func (e *engine) sign(ctx context.Context, version string) error {
	if version == "" || version == noVersion {
		return nil
	}
	now, err := viewStore(ctx, e.store, fileWriter)
	if err == nil && now != version {
		err = e.store.Update(ctx, func(tx Tx) error { return tx.Put(writerKey(), []byte(version)) })
	}
	if errors.Is(err, errUnavailable) || errors.Is(err, errCorrupt) { // what can be read is served
		return nil
	}
	return err
}

// noVersion is the version of a build that has none.
const noVersion = "(devel)"

// writtenBy adds to a refusal of a later schema which sello has written it.
func (e *engine) writtenBy(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*schemaError](err)
	if !ok || refused.version <= schemaVersion {
		return err
	}
	if by, err := viewStore(ctx, e.store, fileWriter); err == nil && by != "" {
		refused.cause = "lo escribió sello " + by
	}
	return refused
}
