package disk

import (
	"reflect"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// forgetTaken makes bbolt forget which transaction took which page from the list of
// free pages. bbolt remembers that of each page until it is freed: in time, of
// most pages of the file, at 20 to 40 bytes each.
//
// It needs that for one thing: to take again, while an old transaction is still being read, what
// was both taken and freed since that began. A page of which it does not know who took it waits
// until nobody reads what is older than its freeing. So to forget is always safe; and where
// nobody reads what is older than the last commit, nothing waits longer for it.
//
// The caller is in the transaction that writes, which has taken no pages yet: Commit takes them.
func forgetTaken(db *bolt.DB) {
	if taken, ok := takenPages(db); ok {
		taken.Set(reflect.MakeMap(taken.Type())) // Clear would keep its memory
	}
}

// takenPages returns the map from pages to transactions in which bbolt remembers that;
// ok is false where there is none where the bbolt of go.mod has it.
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
