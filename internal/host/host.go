// Package host asks the operating system what Go's library asks in another way for each: the
// room on a disk, the clock that counts sleep, the ends of a command.
package host
