package main

import (
	"regexp"
	"strconv"
	"time"
)

// durationForm is a duration of ISO 8601 in whole numbers, but for its seconds.
var durationForm = regexp.MustCompile(`^P(?:(\d{1,4})Y)?(?:(\d{1,4})M)?(?:(\d{1,4})W)?(?:(\d{1,5})D)?(T(?:(\d{1,6})H)?(?:(\d{1,7})M)?(?:(\d{1,9})(?:\.(\d{1,3}))?S)?)?$`)

// addDuration returns the moment that comes a duration of ISO 8601, such as P1M or PT36H, after
// another one. Years, months, weeks and days are those of the calendar in a time zone: P1M after 31
// January is 28 February. ok is false if text is no duration.
func addDuration(at instant, text string, zone *time.Location) (then instant, ok bool) {
	m := durationForm.FindStringSubmatch(text)
	if m == nil || text == "P" || m[5] == "T" {
		return 0, false
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(m[i]) // "" is 0
		return v
	}
	t := addMonths(at.time().In(zone), 12*n(1)+n(2)).AddDate(0, 0, 7*n(3)+n(4))
	millis, _ := strconv.Atoi((m[9] + "000")[:3])
	clock := time.Duration(n(6))*time.Hour + time.Duration(n(7))*time.Minute + time.Duration(n(8))*time.Second + time.Duration(millis)*time.Millisecond
	return instantOf(t.Add(clock)), true
}
