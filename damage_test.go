package main

import "flag"

var (
	damageN    = flag.Int("damage.n", 0, "damaged files to try; 0: as many as a normal run has time for")
	damageSeed = flag.Uint64("damage.seed", 1, "what damage is chosen by")
)
