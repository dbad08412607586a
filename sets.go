package main

import "sello/internal/blockset"

// Sets of numbers, of customers or of redemptions, are kept in blocks (internal/blockset):
//
//	set block(4) → the numbers in the block

// putInSet puts a number into the set whose blocks lie under a key, or takes it
// out, and reports whether that changed the set.
func putInSet(tx Tx, set key, number uint64, member bool) (changed bool, err error) {
	return putInBlock(tx, set.u32(uint32(number/blockset.Block)), number, member)
}

// putInBlock is putInSet for the number's block, which is at k.
func putInBlock(tx Tx, k key, number uint64, member bool) (changed bool, err error) {
	value, _, err := tx.Get(k)
	if err != nil {
		return false, err
	}
	value, changed = blockset.Change(value, number%blockset.Block, member)
	switch {
	case !changed:
		return false, nil
	case len(value) == 0:
		return true, tx.Delete(k)
	}
	return true, tx.Put(k, value)
}
