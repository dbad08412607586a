package main

import (
	"context"
	"errors"
	"fmt"
)

// An Update writes everything or nothing, and may run more than once: update returns what the
// run that was committed gave. A View sees one committed state, in the order of the keys.
func ExampleStore() {
	ctx, s := context.Background(), newMemStore()
	defer s.Close()
	first, err := updateStore(ctx, s, func(tx Tx) (string, error) {
		return "Ana", errors.Join(tx.Put([]byte("c2"), []byte("Eva")), tx.Put([]byte("c1"), []byte("Ana")))
	})
	fmt.Println(first, err)
	fmt.Println(s.Update(ctx, func(tx Tx) error {
		return errors.Join(tx.Delete([]byte("c1")), errors.New("refused"))
	}))
	fmt.Println(s.View(ctx, func(tx Tx) error {
		for e, err := range tx.Scan([]byte("c"), []byte("d"), false) {
			fmt.Printf("%s=%s %v\n", e.Key, e.Value, err)
		}
		return tx.Put([]byte("c3"), nil)
	}))
	// Output:
	// Ana <nil>
	// refused
	// c1=Ana <nil>
	// c2=Eva <nil>
	// store: write in a read-only transaction
}
