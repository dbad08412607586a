//go:build race

package main

// raceDetector tells whether the race detector is on: what it watches is many
// times slower.
const raceDetector = true
