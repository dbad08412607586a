package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"sello/internal/webhook"
)

// A delivery goes to public addresses alone, unless its client allows others. The receiver
// sees the same id whenever the message is sent again.
func ExampleSend() {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("got", r.Header.Get("webhook-id"), r.Header.Get("webhook-signature"))
	}))
	defer receiver.Close()
	message := &webhook.Message{URL: receiver.URL, ID: "evt_1", Secrets: [][]byte{make([]byte, webhook.SecretSize)}, Body: []byte(`{}`)}
	for _, allow := range [][]netip.Prefix{nil, {netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}} {
		outcome := webhook.Send(context.Background(), webhook.NewClient(allow), message, time.Unix(1_800_000_000, 0))
		fmt.Println(outcome.OK(), outcome.Status)
	}
	// Output:
	// false 0
	// got evt_1 v1,ZWflAu0aog8xNhwnYzGZICCNEM5/mvwvo3lPSk87VJ0=
	// true 200
}
