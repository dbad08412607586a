package main

import "time"

// A day is a date by an organization's calendar, counted from 1 January 1970.
type day int32

// dayOn is the day of a date; what is beyond a month or year counts on into
// the next, as time.Date has it.
func dayOn(year int, month time.Month, d int) day {
	return day(time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func dayOf(i instant, zone *time.Location) day {
	t := i.time().In(zone)
	return dayOn(t.Date())
}

// date is the day as a moment of UTC, to calculate with.
func (d day) date() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

func (d day) String() string { return d.date().Format(time.DateOnly) }

// start is the first moment of the day in zone. It is midnight, but where the
// clocks change at midnight there may be none, or two of them.
func (d day) start(zone *time.Location) instant {
	date := d.date()
	noon := time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, zone)
	first := noon.Add(-time.Duration(noon.Hour()) * time.Hour)
	if change, _ := noon.ZoneBounds(); !change.IsZero() && !change.Before(first) {
		// The clocks changed since: midnight by what they showed before, if
		// that was still the day before, or else the change itself.
		_, offset := change.Add(-time.Nanosecond).Zone()
		first = date.Add(-time.Duration(offset) * time.Second)
		if first.After(change) {
			first = change
		}
	}
	return instantOf(first)
}

// end is the last moment of the day in zone.
func (d day) end(zone *time.Location) instant { return (d + 1).start(zone) - 1 }

// addMonths keeps the day of the month, or takes the month's last day where
// the month is too short for it: 31 January and one month is the last day of
// February.
func addMonths(t time.Time, months int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}
