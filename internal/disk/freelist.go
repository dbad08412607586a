package disk

import (
	"reflect"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// forgetTaken makes bbolt forget which transaction took which page from its free list.
// bbolt remembers that until the page is freed, at 25 to 38 bytes a page. In time it
// remembers most pages of the file: 100 to 150 MB for a file of 18 GB, where a server has
// 240 MB for everything.
//
// bbolt needs it for one thing: while an old transaction is still being read, it may reuse
// a page that was both taken and freed since that transaction began. A page whose taker it
// does not know waits until all readers are newer than its freeing. So forgetting is
// always safe, and if nobody reads an older state than the last commit no page waits longer.
//
// The caller is in the write transaction, which has taken no pages yet: Commit takes them.
func forgetTaken(db *bolt.DB) {
	if taken, ok := takenPages(db); ok {
		taken.Set(reflect.MakeMap(taken.Type())) // Clear would keep its memory
	}
}

// takenPages returns bbolt's map from pages to the transactions that took them. ok is
// false if bbolt has no such map where the release of go.mod has it.
func takenPages(db *bolt.DB) (taken reflect.Value, ok bool) {
	v := reflect.ValueOf(db)
	for _, name := range []string{"freelist", "shared", "allocs"} {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return v, false
		}
		v = v.FieldByName(name)
	}
	if v.Kind() != reflect.Map || !v.CanAddr() {
		return v, false
	}
	// reflect lets nobody change what another package does not export.
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem(), true
}
