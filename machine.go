//go:build !clocktest

package main

// theMachine returns the machine that sello runs on.
func theMachine() machine { return newSystemClock() }
