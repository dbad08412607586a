package panel

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// codeOf is the code of a second factor (RFC 6238), some steps of 30 seconds from now.
func codeOf(secret string, steps int64) string {
	key, _ := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	var moment [8]byte
	binary.BigEndian.PutUint64(moment[:], uint64(time.Now().Unix()/30+steps))
	mac := hmac.New(sha1.New, key)
	mac.Write(moment[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:])&0x7fffffff%1_000_000)
}

// operate lets who has a role run the server, who needs a second factor for it.
func (s *shop) operate(role string) {
	s.t.Helper()
	const path = "/panel/cuenta/segundo-factor"
	page, at := s.follow(role, path)
	secret := regexp.MustCompile(`secret=([A-Z2-7]+)`).FindStringSubmatch(page.Body)
	forms := formsOf(at, page.Body)
	i := slices.IndexFunc(forms, func(f form) bool { return f.path == path })
	if secret == nil || i < 0 {
		s.t.Fatalf("no second factor is offered\n%s", page.Body)
	}
	if a := s.post(role, forms[i].with("factorCode", codeOf(secret[1], 0))); a.Status != http.StatusOK {
		s.t.Fatalf("second factor: %d\n%s", a.Status, a.Body)
	}
	s.command(nil, "user", "operator", role+"@example.com", "on")
}
