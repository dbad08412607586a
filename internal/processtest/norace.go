//go:build !race

package processtest

// RaceDetector tells whether the race detector is on.
const RaceDetector = false
