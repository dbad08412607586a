package nearest

import (
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

// TestOf: which names are near enough to be suggested.
func TestOf(t *testing.T) {
	t.Parallel()
	known := []string{"to", "sku", "type", "email", "phoneNumber", "firstName", "lastName", "clientId", "originalTransactionId"}
	for name, want := range map[string]string{
		"To": "to", "t": "to", "tipo": "", "x": "", "sk": "sku", "sk_u": "sku", "ks": "", "Type": "type", "tpye": "type", "tap": "",
		"emali": "email", "e-mail": "email", "mail": "email", "clientEmail": "email", "eml": "email",
		"phone": "phoneNumber", "number": "phoneNumber", "nam": "", "name": "", "first_name": "firstName", "firstname ": "firstName",
		"client": "clientId", "client_ID": "clientId", "clintId": "clientId", "buyer": "",
		"orignalTransctionID": "originalTransactionId", "transactionId": "originalTransactionId", "id": "", "": "",
		strings.Repeat("email", 30): "",
	} {
		if got := Of(name, known); got != want {
			t.Errorf("%q: %q, not %q", name, got, want)
		}
	}
	if d := diff.Diff([]int{0, 1, 1, 1, 1, 2, 3}, []int{
		Edits("abc", "abc"), Edits("abc", "ab"), Edits("ab", "abc"), Edits("abc", "axc"), Edits("abc", "acb"), Edits("abcd", "badc"), Edits("", "abc"),
	}); d != "" {
		t.Error(d)
	}
}
