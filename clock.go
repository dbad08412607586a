package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Moments in milliseconds, and ids. A transaction takes both from its mint, so that it writes the
// same when it runs again.

// An instant is a moment as sello keeps it: milliseconds since 1970 in UTC.
// The zero instant stands for "none" where a moment may be absent.
type instant int64

// never is later than every moment: the expiry of points that do not expire.
const never instant = 1<<63 - 1

// instantOf drops what is finer than a millisecond.
func instantOf(t time.Time) instant { return instant(t.UnixMilli()) }

func (i instant) time() time.Time { return time.UnixMilli(int64(i)).UTC() }

func (i instant) add(d time.Duration) instant { return i + instant(d.Milliseconds()) }

func (i instant) sub(o instant) time.Duration { return time.Duration(i-o) * time.Millisecond }

// layoutMillis is ISO 8601 in UTC with milliseconds (contract §1).
const layoutMillis = "2006-01-02T15:04:05.000Z"

func (i instant) String() string { return string(i.append(nil)) }

// append writes i in layoutMillis.
func (i instant) append(b []byte) []byte {
	t := i.time()
	year, month, day := t.Date()
	if year < 1000 || year > 9999 {
		return t.AppendFormat(b, layoutMillis)
	}
	hour, min, sec := t.Clock()
	b = strconv.AppendInt(b, int64(year), 10)
	b = append2(append(b, '-'), int(month))
	b = append2(append(b, '-'), day)
	b = append2(append(b, 'T'), hour)
	b = append2(append(b, ':'), min)
	b = append2(append(b, ':'), sec)
	milli := t.Nanosecond() / 1e6
	b = append(b, '.', byte('0'+milli/100))
	return append(append2(b, milli%100), 'Z')
}

// append2 appends n, which is below 100, as two digits.
func append2(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

func (i instant) MarshalJSON() ([]byte, error) { return i.appendJSON(make([]byte, 0, 26)), nil }

// appendJSON writes an absent moment (0 or never) as null.
func (i instant) appendJSON(b []byte) []byte {
	if i == 0 || i == never {
		return append(b, "null"...)
	}
	return append(i.append(append(b, '"')), '"')
}

func (i *instant) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*i = 0
		return nil
	}
	t, err := time.Parse(`"`+layoutMillis+`"`, string(b))
	if err != nil {
		return err
	}
	*i = instantOf(t)
	return nil
}

var errBadID = errors.New("not an id")

// An id is a UUIDv7. Clients see it as an opaque lower-case string.
type id [16]byte

func (u id) String() string {
	var b [36]byte
	u.encode(b[:])
	return string(b[:])
}

func (u id) encode(b []byte) {
	const digits = "0123456789abcdef"
	at := 0
	for i, v := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b[at] = '-'
			at++
		}
		b[at], b[at+1] = digits[v>>4], digits[v&15]
		at += 2
	}
}

// appendJSON writes the zero id as MarshalText does.
func (u id) appendJSON(b []byte) []byte {
	if u == (id{}) {
		return append(b, `""`...)
	}
	b = append(b, `"00000000-0000-0000-0000-000000000000"`...)
	u.encode(b[len(b)-37:])
	return b
}

// MarshalText writes the zero id as the empty string; fields that may be
// absent are pointers or strings in responses.
func (u id) MarshalText() ([]byte, error) {
	if u == (id{}) {
		return nil, nil
	}
	b := make([]byte, 36)
	u.encode(b)
	return b, nil
}

func (u *id) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*u = id{}
		return nil
	}
	v, ok := parseID(b)
	if !ok {
		return errBadID
	}
	*u = v
	return nil
}

// parseID accepts exactly the form that String writes, and not the zero id.
// Nothing has an id of another form.
func parseID[S string | []byte](s S) (id, bool) {
	var u id
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id{}, false
	}
	for _, part := range [...]struct{ to, from int }{{0, 0}, {2, 4}, {4, 9}, {6, 14}, {8, 19}, {10, 24}, {12, 28}, {14, 32}} {
		for i := range 2 {
			hi, ok1 := lowerHex(s[part.from+2*i])
			lo, ok2 := lowerHex(s[part.from+2*i+1])
			if !ok1 || !ok2 {
				return id{}, false
			}
			u[part.to+i] = hi<<4 | lo
		}
	}
	return u, u != id{}
}

func lowerHex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// derive returns the id of something that belongs to the owner of u. Such an id
// needs no record: the same parts always give the same one. It has the form of
// a UUIDv7 and the time of u.
func (u id) derive(parts ...string) id {
	var space [128]byte
	text := append(space[:0], u[:]...)
	for _, p := range parts {
		text = append(append(text, p...), 0)
	}
	hash := sha256.Sum256(text)
	var d id
	copy(d[:6], u[:6])
	copy(d[6:], hash[:])
	return d.stamp()
}

// madeAt is the moment at which an id was made.
func (u id) madeAt() instant { return instant(binary.BigEndian.Uint64(u[:]) >> 16) }

// stamp sets the version and variant bits of a UUIDv7.
func (u id) stamp() id {
	u[6] = 0x70 | u[6]&0x0f
	u[8] = 0x80 | u[8]&0x3f
	return u
}

// A mint makes the ids of one operation. The same moment and seed always
// give the same ids in the same order, so that an Update function that runs
// twice writes the same bytes twice.
type mint struct {
	now  instant
	seed seed
	src  *rand.ChaCha8 // nil until the first id
	last uint32        // counter of the last id

	unsure bool // the clock is unsafe, so that now may be wrong
}

// seed is the randomness of one operation; it is made before the Update.
type seed [32]byte

func newMint(now instant, s seed) *mint { return &mint{now: now, seed: s} }

// id returns a new UUIDv7 (RFC 9562 §5.7): 48 bits of milliseconds, 74 random.
// The first 26 of the 74 count up from their value in the operation's first id (§6.2,
// method 1), so that ids made together, as by an import, lie together in order.
func (m *mint) id() id {
	var u id
	m.bytes(u[6:])
	for i := range 6 {
		u[i] = byte(m.now >> (40 - 8*i))
	}
	n := m.last + 1
	if m.last == 0 {
		n = uint32(u[6]&0x0f)<<22 | uint32(u[7])<<14 | uint32(u[8]&0x3f)<<8 | uint32(u[9])
	}
	m.last = n
	u[6], u[7], u[8], u[9] = byte(n>>22), byte(n>>14), byte(n>>8), byte(n)
	return u.stamp()
}

// bytes fills b with randomness of this operation.
func (m *mint) bytes(b []byte) {
	if m.src == nil {
		m.src = rand.NewChaCha8(m.seed)
	}
	m.src.Read(b)
}

// secret returns bytes that nothing kept tells: they depend on the seed, which is not
// kept, on their purpose and on a number.
func (m *mint) secret(purpose string, number uint64) [sha256.Size]byte {
	text := append(append(make([]byte, 0, 64), m.seed[:]...), purpose...)
	return sha256.Sum256(binary.BigEndian.AppendUint64(text, number))
}

// base62 returns n in width digits. The digits are 0–9, then a–z, then A–Z.
func base62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}

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
