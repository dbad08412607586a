//go:build !unix

package main

import "math"

// maxFiles is how many files and connections the process may have open.
func maxFiles() int { return math.MaxInt32 }

func makePrivate(uintptr) {}
