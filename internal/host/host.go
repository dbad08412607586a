// Package host has what is done differently on each operating system, and is not in Go's
// library: the room on a disk, the clock that counts sleep, the limit of open files, how a
// command is ended. A Space watches the room.
package host
