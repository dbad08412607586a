//go:build !unix

package main

import "math"

// maxFiles returns how many files and connections the process may have open.
func maxFiles() int { return math.MaxInt32 }

func makePrivate(uintptr) {}
