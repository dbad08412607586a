//go:build !linux

package metrics

import "math"

func residentMemory() float64 { return math.NaN() }
func openFiles() float64      { return math.NaN() }
