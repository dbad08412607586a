//go:build !clocktest

package main

// theMachine is the machine that sello runs on.
func theMachine() machine { return newSystemClock() }
