package totp

import (
	"strings"
	"testing"
)

// TestVectors holds codes against those of RFC 6238, appendix B (SHA-1, 8 digits), and of
// RFC 4226, appendix D (6 digits).
func TestVectors(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for seconds, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := HOTP(secret, uint64(seconds*1000/Step), 8); got != want {
			t.Errorf("at %d: %s, want %s", seconds, got, want)
		}
	}
	for i, want := range strings.Fields("755224 287082 359152 969429 338314 254676 287922 162583 399871 520489") {
		if got := Code(secret, int64(i)*Step); got != want {
			t.Errorf("counter %d: %s, want %s", i, got, want)
		}
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	if link := Link("sello", "a&b@ejemplo.mx", "ABCD"); link != "otpauth://totp/sello:a&b@ejemplo.mx?issuer=sello&secret=ABCD" {
		t.Error(link)
	}
}
