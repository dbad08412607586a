package main

import (
	"bytes"
	"testing"
	"time"
)

// TestMint checks that the ids of one operation are UUIDv7 of its moment in
// ascending order. The same moment and seed give the same ids, another seed others.
func TestMint(t *testing.T) {
	t.Parallel()
	const moment, many = instant(0x0190_1234_5678), 5000
	for n := range byte(20) {
		m, again := newMint(moment, seed{n}), newMint(moment, seed{n})
		var first, last id
		for i := range many {
			u := m.id()
			if u != again.id() {
				t.Fatalf("seed %d: id %d is another one the second time", n, i)
			}
			if u[6]>>4 != 7 || u[8]>>6 != 2 || !bytes.Equal(u[:6], []byte{0x01, 0x90, 0x12, 0x34, 0x56, 0x78}) {
				t.Fatalf("seed %d: id %d is %s", n, i, u)
			}
			if bytes.Compare(u[:], last[:]) <= 0 {
				t.Fatalf("seed %d: id %d is %s, after %s", n, i, u, last)
			}
			if last = u; i == 0 {
				first = u
			}
		}
		if other := newMint(moment, seed{n + 100}).id(); bytes.Equal(first[:10], other[:10]) {
			t.Errorf("seeds %d and %d give neighbouring ids", n, n+100)
		}
	}
}

// zoneOf loads a time zone.
func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// instantAt parses RFC 3339, so that tables are readable.
func instantAt(t *testing.T, s string) instant {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return instantOf(at)
}

// TestExpiry shows when points given at a moment expire, by the calendar of
// the organization.
func TestExpiry(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		zone   string
		expiry expiry
		from   string
		want   string
	}{
		{"days keep the time of day", "UTC", expiry{Days: 30}, "2026-03-02T10:13:45Z", "2026-04-01T10:13:45Z"},
		{"days over the end of winter time are a shorter span", "Europe/Madrid", expiry{Days: 1}, "2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00"},
		{"days over the end of summer time are a longer one", "Europe/Madrid", expiry{Days: 1}, "2026-10-24T12:00:00+02:00", "2026-10-25T12:00:00+01:00"},
		{"a month", "UTC", expiry{Months: 1}, "2026-03-02T10:00:00Z", "2026-04-02T10:00:00Z"},
		{"31 January and a month is the last of February", "UTC", expiry{Months: 1}, "2026-01-31T10:00:00Z", "2026-02-28T10:00:00Z"},
		{"so are 28, 29 and 30 January", "UTC", expiry{Months: 1}, "2026-01-29T10:00:00Z", "2026-02-28T10:00:00Z"},
		{"in a leap year the 29th", "UTC", expiry{Months: 1}, "2028-01-31T10:00:00Z", "2028-02-29T10:00:00Z"},
		{"which 2000 was", "UTC", expiry{Months: 1}, "2000-01-30T10:00:00Z", "2000-02-29T10:00:00Z"},
		{"and 2100 will not be", "UTC", expiry{Months: 1}, "2100-01-30T10:00:00Z", "2100-02-28T10:00:00Z"},
		{"29 February and a year", "UTC", expiry{Months: 12}, "2028-02-29T10:00:00Z", "2029-02-28T10:00:00Z"},
		{"29 February and four years", "UTC", expiry{Months: 48}, "2028-02-29T10:00:00Z", "2032-02-29T10:00:00Z"},
		{"31 August and a month and so on", "UTC", expiry{Months: 13}, "2026-08-31T10:00:00Z", "2027-09-30T10:00:00Z"},
		{"over the end of the year", "UTC", expiry{Months: 1}, "2026-12-31T23:59:59Z", "2027-01-31T23:59:59Z"},
		{"the date is the shop's: the first in Mexico City, the second in UTC", "America/Mexico_City", expiry{Months: 1}, "2026-02-01T05:00:00Z", "2026-02-28T23:00:00-06:00"},
		{"the date is the shop's, ahead of UTC", "Pacific/Auckland", expiry{Months: 1}, "2026-01-30T12:00:00Z", "2026-02-28T01:00:00+13:00"},

		{"the end of the month", "UTC", expiry{Months: 1, EndOf: "Month"}, "2026-03-02T10:00:00Z", "2026-04-30T23:59:59.999Z"},
		{"from its first moment", "UTC", expiry{Months: 1, EndOf: "Month"}, "2026-03-01T00:00:00Z", "2026-04-30T23:59:59.999Z"},
		{"to its last", "UTC", expiry{Months: 1, EndOf: "Month"}, "2026-03-31T23:59:59.999Z", "2026-04-30T23:59:59.999Z"},
		{"31 January, and February's end", "UTC", expiry{Months: 1, EndOf: "Month"}, "2026-01-31T10:00:00Z", "2026-02-28T23:59:59.999Z"},
		{"the end of December", "UTC", expiry{Months: 1, EndOf: "Month"}, "2026-11-05T10:00:00Z", "2026-12-31T23:59:59.999Z"},
		{"days to the end of a month", "UTC", expiry{Days: 30, EndOf: "Month"}, "2026-01-15T10:00:00Z", "2026-02-28T23:59:59.999Z"},
		{"the shop's month", "America/Mexico_City", expiry{Months: 12, EndOf: "Month"}, "2026-12-01T05:59:59Z", "2027-11-30T23:59:59.999-06:00"},
		{"the month ends where midnight is skipped", "America/Asuncion", expiry{Months: 1, EndOf: "Month"}, "2017-08-15T10:00:00Z", "2017-09-30T23:59:59.999-04:00"},
		{"the month ends where midnight comes twice", "America/Havana", expiry{Months: 1, EndOf: "Month"}, "2026-09-15T10:00:00Z", "2026-10-31T23:59:59.999-04:00"},

		{"a time of day that is skipped is an hour later", "Europe/Madrid", expiry{Days: 1}, "2026-03-28T02:30:00+01:00", "2026-03-29T03:30:00+02:00"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := test.expiry.endOfLife(instantAt(t, test.from), zoneOf(t, test.zone))
			if want := instantAt(t, test.want); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	if got := (*expiry)(nil).endOfLife(0, time.UTC); got != never {
		t.Errorf("without an expiry: %d, want never", got)
	}
}

// zonesOfDays are time zones with unusual days: some skip midnight, some have it
// twice, one has skipped a date.
var zonesOfDays = []string{
	"UTC", "America/Mexico_City", "America/Sao_Paulo", "America/Asuncion", "America/Santiago", "America/Havana", "Atlantic/Azores",
	"Asia/Beirut", "Asia/Amman", "Asia/Gaza", "Asia/Tehran", "Africa/Cairo", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns",
}

// TestDays checks that start returns the first moment of a date, and that the
// moment 22 hours later is still of that date.
func TestDays(t *testing.T) {
	t.Parallel()
	for _, name := range zonesOfDays {
		zone := zoneOf(t, name)
		for d := dayOn(2008, 1, 1); d < dayOn(2027, 1, 1); d++ {
			start := d.start(zone)
			if name == "Pacific/Apia" && d == dayOn(2011, 12, 30) {
				continue // Apia had no such day
			}
			if dayOf(start, zone) != d || dayOf(start-1, zone) >= d {
				t.Errorf("%s: %s begins at %s, which is not its first moment", name, d, start.time().In(zone))
			}
			late := start.add(22 * time.Hour)
			if date := late.time().In(zone).Format(time.DateOnly); dayOf(late, zone) != d || date != d.String() {
				t.Errorf("%s: %s is of %s, want %s", name, late, dayOf(late, zone), date)
			}
		}
	}
}

// momentCases are moments as clients write them.
var momentCases = []struct {
	reason   string
	zone     string
	text     string
	endOfDay bool
	want     string // "" if text is refused
}{
	{"RFC 3339 in UTC", "America/Mexico_City", "2026-11-20T10:13:45Z", true, "2026-11-20T10:13:45Z"},
	{"with an offset", "UTC", "2026-11-20T10:13:45-06:00", true, "2026-11-20T16:13:45Z"},
	{"with milliseconds", "UTC", "2026-11-20T10:13:45.678Z", true, "2026-11-20T10:13:45.678Z"},
	{"what is finer is dropped", "UTC", "2026-11-20T10:13:45.678999Z", true, "2026-11-20T10:13:45.678Z"},
	{"local, by the organization's zone", "America/Mexico_City", "2026-11-20T10:13:45", true, "2026-11-20T16:13:45Z"},
	{"local, with milliseconds", "America/Mexico_City", "2026-11-20T10:13:45.5", true, "2026-11-20T16:13:45.5Z"},
	{"local, without seconds", "America/Mexico_City", "2026-11-20T10:13", true, "2026-11-20T16:13:00Z"},
	{"local, in summer", "Europe/Madrid", "2026-07-01T12:00:00", true, "2026-07-01T10:00:00Z"},
	{"a date, to its end", "America/Mexico_City", "2026-11-20", true, "2026-11-21T05:59:59.999Z"},
	{"a date, from its beginning", "America/Mexico_City", "2026-11-20", false, "2026-11-20T06:00:00Z"},
	{"a date of 23 hours, to its end", "Europe/Madrid", "2026-03-29", true, "2026-03-29T21:59:59.999Z"},
	{"a date of 25 hours, to its end", "Europe/Madrid", "2026-10-25", true, "2026-10-25T22:59:59.999Z"},
	{"a date that begins at one, as midnight is skipped", "America/Sao_Paulo", "2018-11-04", false, "2018-11-04T03:00:00Z"},
	{"the date before it, to its end", "America/Sao_Paulo", "2018-11-03", true, "2018-11-04T02:59:59.999Z"},
	{"a date that ends with an hour that comes twice", "America/Sao_Paulo", "2018-02-17", true, "2018-02-18T02:59:59.999Z"},
	{"midnight skipped these days", "America/Santiago", "2026-09-06", false, "2026-09-06T04:00:00Z"},
	{"the date before, to its end", "America/Santiago", "2026-09-05", true, "2026-09-06T03:59:59.999Z"},
	{"midnight comes twice: the first one", "Asia/Amman", "2021-10-29", false, "2021-10-28T21:00:00Z"},
	{"midnight comes twice: the end of the date before", "Asia/Amman", "2021-10-28", true, "2021-10-28T20:59:59.999Z"},
	{"midnight comes twice, west of Greenwich", "America/Havana", "2026-11-01", false, "2026-11-01T04:00:00Z"},
	{"29 February", "UTC", "2028-02-29", true, "2028-02-29T23:59:59.999Z"},
	{"the last date there is", "UTC", "9999-12-31", true, "9999-12-31T23:59:59.999Z"},
	{"the last date there is, west of Greenwich: as far as UTC goes", "America/Mexico_City", "9999-12-31", true, "9999-12-31T23:59:59.999Z"},
	{"the last date there is, from its beginning", "America/Mexico_City", "9999-12-31", false, "9999-12-31T06:00:00Z"},
	{"the last date there is, east of Greenwich", "Asia/Tokyo", "9999-12-31", true, "9999-12-31T14:59:59.999Z"},
	{"the last local hour there is", "America/Mexico_City", "9999-12-31T23:00", true, "9999-12-31T23:59:59.999Z"},
	{"the last hour there is, with an offset", "UTC", "9999-12-31T23:00:00-06:00", true, "9999-12-31T23:59:59.999Z"},
	{"the first date there is", "UTC", "0001-01-01", false, "0001-01-01T00:00:00Z"},
	{"the first date there is, east of Greenwich", "Asia/Tokyo", "0001-01-01", false, "0001-01-01T00:00:00Z"},
	{"a small t and z", "America/Mexico_City", "2026-11-20t10:13:45z", true, "2026-11-20T10:13:45Z"},
	{"without seconds, in UTC", "America/Mexico_City", "2026-11-20T07:08Z", true, "2026-11-20T07:08:00Z"},
	{"without seconds, small", "America/Mexico_City", "2026-11-20t07:08z", true, "2026-11-20T07:08:00Z"},
	{"without seconds, with an offset", "UTC", "2026-11-20T07:08+05:30", true, "2026-11-20T01:38:00Z"},
	{"an offset without colon", "UTC", "2026-11-20T07:08:09-0600", true, "2026-11-20T13:08:09Z"},
	{"an offset without colon nor seconds", "UTC", "2026-11-20T07:08+0530", true, "2026-11-20T01:38:00Z"},
	{"the offset of nobody knows where", "America/Mexico_City", "2026-11-20T07:08:09-00:00", true, "2026-11-20T07:08:09Z"},
	{"a small t, local", "America/Mexico_City", "2026-11-20t10:13", true, "2026-11-20T16:13:00Z"},

	{"nothing", "UTC", "", true, ""},
	{"29 February of another year", "UTC", "2026-02-29", true, ""},
	{"a month too many", "UTC", "2026-13-01", true, ""},
	{"an hour too many", "UTC", "2026-11-20T24:00:00Z", true, ""},
	{"a date in another order", "UTC", "20/11/2026", true, ""},
	{"a date with spaces", "UTC", " 2026-11-20", true, ""},
	{"a space for the T", "UTC", "2026-11-20 10:13:45", true, ""},
	{"a time alone", "UTC", "10:13:45", true, ""},
	{"a year beyond four digits", "UTC", "10000-01-01", true, ""},
	{"the year 0", "UTC", "0000-01-01", true, ""},
	{"a number", "UTC", "1763633625", true, ""},
	{"an hour of one digit", "UTC", "2026-11-20T1:02:03Z", true, ""},
	{"a comma for the point", "UTC", "2026-11-20T10:13:45,5Z", true, ""},
	{"an offset of a day", "UTC", "2026-11-20T10:13:45+24:00", true, ""},
	{"an offset of sixty minutes", "UTC", "2026-11-20T10:13:45+00:60", true, ""},
	{"an hour of the year 0", "UTC", "0000-01-01T00:00:00Z", true, ""},
	{"an hour of the year 0 that is the year 1 in UTC", "UTC", "0000-12-31T23:00:00-06:00", true, ""},
	{"fractions of a minute", "UTC", "2026-11-20T10:13.5Z", true, ""},
	{"an offset of hours", "UTC", "2026-11-20T10:13:45-06", true, ""},
	{"an offset of three digits", "UTC", "2026-11-20T10:13:45-600", true, ""},
	{"an offset without colon, beyond a day", "UTC", "2026-11-20T10:13:45+2400", true, ""},
	{"a Z and an offset", "UTC", "2026-11-20T10:13:45Z+00:00", true, ""},
	{"a leap second", "UTC", "2026-12-31T23:59:60Z", true, ""},
	{"the widest offsets", "UTC", "2026-11-20T10:13:45-23:59", true, "2026-11-21T10:12:45Z"},
	{"a word", "UTC", "tomorrow", true, ""},
}

// TestParseMoment shows what clients may write for a moment.
func TestParseMoment(t *testing.T) {
	t.Parallel()
	for _, test := range momentCases {
		t.Run(test.reason, func(t *testing.T) {
			got, ok := parseMoment(test.text, zoneOf(t, test.zone), test.endOfDay)
			switch {
			case ok != (test.want != ""):
				t.Errorf("accepted is %t: %s", ok, got)
			case ok && got != instantAt(t, test.want):
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
