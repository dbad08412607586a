//go:build !clocktest

package wallclock

// System returns the machine that the program runs on.
func System() Machine { return newSystem() }
