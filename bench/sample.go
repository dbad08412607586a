package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A latency is a span of time in steps of 100 ns: 32 bits hold 7 minutes.
type latency uint32

const latencyStep = 100 * time.Nanosecond

func latencyOf(d time.Duration) latency {
	return latency(min(max(d, 0)/latencyStep, math.MaxUint32))
}

func (l latency) duration() time.Duration { return time.Duration(l) * latencyStep }

// quantile returns the least of the sorted values that at least a share q of them do
// not exceed.
func quantile[T any](sorted []T, q float64) T {
	var none T
	if len(sorted) == 0 {
		return none
	}
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// median returns the median of values in any order. For an even number of values it
// is the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// withQuartiles tells the median of values and the medians of their lower and upper half, both of
// which have the one in the middle.
func withQuartiles(values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	half := (len(sorted) + 1) / 2
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(sorted), median(sorted[:half]), median(sorted[len(sorted)-half:]))
}

// ratios divides the values of above by those of below, pair by pair.
func ratios(above, below []float64) []float64 {
	list := make([]float64, min(len(above), len(below)))
	for i := range list {
		list[i] = above[i] / below[i]
	}
	return list
}
