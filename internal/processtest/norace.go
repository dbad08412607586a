//go:build !race

package processtest

// RaceDetector reports whether the race detector is on.
const RaceDetector = false
