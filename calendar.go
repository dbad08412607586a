package main

import (
	"cmp"
	"regexp"
	"time"
)

// Days in a time zone, and moments as clients write them.

// A day is a date by an organization's calendar, counted from 1 January 1970.
type day int32

// dayOn returns the day of a date. As in time.Date, a day beyond its month or a
// month beyond its year counts on into the next.
func dayOn(year int, month time.Month, d int) day {
	return day(time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func dayOf(i instant, zone *time.Location) day {
	t := i.time().In(zone)
	return dayOn(t.Date())
}

// date returns the start of the day in UTC, to calculate with.
func (d day) date() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

func (d day) String() string { return d.date().Format(time.DateOnly) }

// start returns the first moment of the day in zone. That is midnight, unless the
// clocks change at midnight: then there may be no midnight, or two.
func (d day) start(zone *time.Location) instant {
	date := d.date()
	noon := time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, zone)
	first := noon.Add(-time.Duration(noon.Hour()) * time.Hour)
	if change, _ := noon.ZoneBounds(); !change.IsZero() && !change.Before(first) {
		// The clocks changed between midnight and noon. The day begins at midnight
		// by the offset before the change, or at the change if that comes first.
		_, offset := change.Add(-time.Nanosecond).Zone()
		first = date.Add(-time.Duration(offset) * time.Second)
		if first.After(change) {
			first = change
		}
	}
	return instantOf(first)
}

// end returns the last moment of the day in zone.
func (d day) end(zone *time.Location) instant { return (d + 1).start(zone) - 1 }

// endOfDays is the end of the day that comes some days after a moment. It is always later than the
// moment, be that the last millisecond of a day.
func endOfDays(at instant, days int, zone *time.Location) instant {
	last := dayOf(at, zone) + day(days)
	if last.end(zone) <= at {
		last++
	}
	return last.end(zone)
}

// addMonths keeps the day of the month, or takes the month's last day where
// the month is too short for it: 31 January and one month is the last day of
// February.
func addMonths(t time.Time, months int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

// The first and the last moment that ISO 8601 can write in UTC.
var (
	firstMoment = instantOf(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	lastMoment  = instantOf(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)) - 1
)

// parseMoment reads a moment as clients write it (contract §1): RFC 3339, or
// a local date-time without offset in zone, or a bare date. endOfDay says
// whether a bare date means the last millisecond of that day in zone, as for an
// expiry, or the first. Every date of the years 1 to 9999 is accepted. If its
// moment in UTC is outside these years, the result is firstMoment or lastMoment.
func parseMoment(s string, zone *time.Location, endOfDay bool) (at instant, ok bool) {
	if date, err := time.Parse(time.DateOnly, s); err == nil && date.Year() > 0 {
		d := dayOn(date.Date())
		if at = d.start(zone); endOfDay {
			at = d.end(zone)
		}
		ok = true
	} else {
		at, ok = parseTime(s, zone)
	}
	if !ok {
		return 0, false
	}
	return min(max(at, firstMoment), lastMoment), true
}

// timeForm is stricter than time.Parse, which accepts an hour of one digit, a
// comma for the point and offsets beyond a day. It is also looser: the seconds and
// the offset's colon may be missing, and T and Z may be lower case. Its groups are
// date, hour and minute, seconds, Z, and hours and minutes of the offset.
var timeForm = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(?:([Zz])|([+-](?:[01]\d|2[0-3])):?([0-5]\d))?$`)

func parseTime(s string, zone *time.Location) (instant, bool) {
	m := timeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	const layout = "2006-01-02T15:04:05"
	text := m[1] + "T" + m[2] + cmp.Or(m[3], ":00")
	var t time.Time
	var err error
	switch {
	case m[4] != "":
		t, err = time.Parse(layout, text)
	case m[5] != "":
		t, err = time.Parse(layout+"-07:00", text+m[5]+":"+m[6])
	default:
		t, err = time.ParseInLocation(layout, text, zone)
	}
	return instantOf(t), err == nil && t.Year() > 0
}

// maxDays and maxMonths bound spans of days and of months: a century.
const (
	maxDays   = 36_525
	maxMonths = 1_200
)
