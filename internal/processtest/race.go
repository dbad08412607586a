//go:build race

package processtest

// RaceDetector tells whether the race detector is on. It makes the test many times
// slower, and does not watch binaries that were built without it.
const RaceDetector = true
