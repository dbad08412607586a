//go:build race

package processtest

// RaceDetector reports whether the race detector is on. The detector makes a test many
// times slower, and does not watch binaries that were built without it.
const RaceDetector = true
