package main

import (
	"reflect"
	"testing"
)

// TestRooms holds rooms.go to its rooms. Each must know its transaction, and for what each
// keeps it must be decided here whether it is written at the end: then held has a copy of it,
// since a row of an import that is dropped must take its part back.
func TestRooms(t *testing.T) {
	t.Parallel()
	written := map[string]bool{
		"points.risen": true, "stats.tallies": true, "saleLog.logged": true, "feed.pending": true,
		"replays.filter": false, "replays.slices": false, "replays.known": false,
		"seals.shown": false, "seals.backing": false, "seals.last": false,
		"sales.versions": false,
		"merges.found":   false, "merges.answer": false, "merges.byContact": false,
		"recount.done": false, // eachRow clears it
	}
	copied := map[reflect.Type]bool{}
	for f := range reflect.TypeFor[held]().Fields() {
		copied[f.Type] = true
	}
	own := bareTestTxn(nil, 1)
	for room, v := range reflect.ValueOf(own.rooms).Fields() {
		if room.Name == "giver" { // another room, by what it does
			if v.Elem().Pointer() != reflect.ValueOf(&own.rewards).Pointer() {
				t.Error("bindRooms forgets giver")
			}
			continue
		}
		for f, value := range v.Fields() {
			name := room.Name + "." + f.Name
			held, known := written[name]
			switch {
			case f.Name == "t":
				if value.Pointer() != reflect.ValueOf(own).Pointer() {
					t.Errorf("%s: bindRooms forgets it", room.Name)
				}
			case !known:
				t.Errorf("%s: is it written at the end? Then saveRooms writes it, and held has a copy", name)
			case held && !copied[f.Type]:
				t.Errorf("%s: held has no copy", name)
			}
			delete(written, name)
		}
	}
	for name := range written {
		t.Errorf("%s is no more", name)
	}
}
