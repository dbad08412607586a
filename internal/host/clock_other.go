//go:build !linux

package host

import "time"

// Awake has no clock to read here.
func Awake() (up time.Duration, ok bool) { return 0, false }

// Synchronized is not known here.
func Synchronized() (yes, known bool) { return false, false }
