package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// signers are the programs of docs/integrar.md that make the QR of a ticket without a network.
var signers = []language{
	{"qr.sh", "shell", "qr.sh", []string{"sh"}, [][2]string{{"openssl", "openssl"}}},
	{"qr.go", "go", "qr.go", []string{"go", "run"}, nil},
	{"qr.mjs", "js", "qr.mjs", []string{"node"}, [][2]string{{"node", "nodejs"}}},
	{"qr.py", "python", "qr.py", []string{"python3"}, [][2]string{{"python3", "python3"}}},
	{"qr.php", "php", "qr.php", []string{"php"}, [][2]string{{"php", "php-cli"}}},
}

// signedExample is the example that they all print: three variables, three arguments, and the address.
// TestTicketExample, of the product, holds it to what the server reads.
var signedExample = regexp.MustCompile("\nexport (TARJETAS=\\S+) (NUMERO=\\S+) (SECRETO=\\S+)\n" +
	"python3 qr\\.py '([^']+)' (\\S+) (\\S+)\n```\n\n```\n(\\S+)\n```\n")

// TestQR runs them: each prints the example, and makes a ticket that is claimed.
func TestQR(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(root + "/docs/integrar.md")
	if err != nil {
		t.Fatal(err)
	}
	example := signedExample.FindStringSubmatch(string(document))
	if example == nil {
		t.Fatal("docs/integrar.md has no example of a QR")
	}
	s := serve(t)
	number, secret := s.ticketSecret(t)
	cards := strings.TrimSuffix(s.Base, "/api/v1")
	for i, l := range signers {
		t.Run(l.heading, func(t *testing.T) {
			t.Parallel()
			for _, n := range l.needs {
				need(t, n[0], n[1])
			}
			program := block(t, string(document), l.heading, l.fence)
			text, err := l.runner(t, program, example[1:4]...)(example[4:7]...)
			if err != nil || text != example[7]+"\n" {
				t.Errorf("the example: %v\n%s", err, text)
			}
			name, amount := fmt.Sprintf("Ñandú %d", i), example[5]
			text, err = l.runner(t, program, "TARJETAS="+cards, "NUMERO="+number, "SECRETO="+secret)(name, amount)
			signed, ours := strings.CutPrefix(strings.TrimSpace(text), cards+"/c/")
			if err != nil || !ours {
				t.Fatalf("%v\n%s", err, text)
			}
			s.checkClaim(t, signed, fmt.Sprintf("+52558765434%d", i), name, amount)
		})
	}
}

// ticketSecret returns a number and a secret of the server's key.
func (s *server) ticketSecret(t *testing.T) (number, secret string) {
	t.Helper()
	var keys []struct{ ID string }
	err := json.Unmarshal([]byte(s.command(t, "", "key", "list", "-json")), &keys)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	var made struct {
		TicketNumber int
		Secret       string
	}
	if err := json.Unmarshal([]byte(s.command(t, "", "key", "ticket-secret", keys[0].ID, "-json")), &made); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(made.TicketNumber), made.Secret
}

// checkClaim claims a ticket for a new customer, and looks at the sale.
func (s *server) checkClaim(t *testing.T, ticket, phone, externalID, amount string) {
	t.Helper()
	var customer struct{ ID string }
	if err := json.Unmarshal(s.post(t, "/customers", `{"phoneNumber":"`+phone+`"}`), &customer); err != nil {
		t.Fatal(err)
	}
	var sale struct {
		CustomerID, ExternalID, Source string
		TotalAmount                    json.Number
	}
	answer := s.post(t, "/tickets/claim", `{"ticket":"`+ticket+`","customerId":"`+customer.ID+`"}`)
	if err := json.Unmarshal(answer, &sale); err != nil {
		t.Fatal(err)
	}
	if sale.CustomerID != customer.ID || sale.Source != "Claim" || sale.ExternalID != externalID || sale.TotalAmount.String() != amount {
		t.Errorf("the sale of the claim: %s", answer)
	}
}
