//go:build !unix

package metrics

import "math"

func processTime() float64 { return math.NaN() }
func maxFiles() float64    { return math.NaN() }
