package systemd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A fakeSupervisor collects what it is told at a datagram socket.
func fakeSupervisor(t *testing.T, name string) (told func() string) {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { c.Close() })
	return func() string {
		b := make([]byte, 100)
		n, err := c.Read(b)
		if err != nil {
			t.Error(err)
		}
		return string(b[:n])
	}
}

// TestSocket: names in the file system, and those of Linux that are not.
func TestSocket(t *testing.T) {
	t.Parallel()
	names := []string{filepath.Join(t.TempDir(), "s")}
	if runtime.GOOS == "linux" {
		names = append(names, fmt.Sprintf("@systemd-test-%d", os.Getpid()))
	}
	for _, name := range names {
		told := fakeSupervisor(t, name)
		log := new(bytes.Buffer)
		n := New(func(v string) string { return map[string]string{"NOTIFY_SOCKET": name}[v] }, 1, slog.New(slog.NewTextHandler(log, nil)))
		n.Say("READY=1")
		if got := told(); got != "READY=1" || log.Len() > 0 {
			t.Errorf("%s: %q\n%s", name, got, log)
		}
	}
}

// TestVariables: what the environment asks for.
func TestVariables(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		socket, usec, pid string
		some              bool
		every             time.Duration
	}{
		{"", "30000000", "", false, 0},
		{"vsock:2:1234", "", "", false, 0},
		{"/s", "", "", true, 0},
		{"/s", "30000000", "", true, 15 * time.Second},
		{"@s", "30000000", "7", true, 15 * time.Second},
		{"/s", "30000000", "8", true, 0},
		{"/s", "-1", "", true, 0},
		{"/s", "soon", "7", true, 0},
	} {
		env := map[string]string{"NOTIFY_SOCKET": test.socket, "WATCHDOG_USEC": test.usec, "WATCHDOG_PID": test.pid}
		n := New(func(v string) string { return env[v] }, 7, nil)
		if (n != nil) != test.some || n != nil && n.every != test.every {
			t.Errorf("%+v: %+v", test, n)
		}
	}
	var none *Notifier
	none.Say("READY=1")
	none.Live(t.Context(), nil)
}

// TestWatchdog: signs of life come at half of the time, and none while the store hangs. An
// error is an answer: a start anew mends no damaged file.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan bool, 4)
		for _, yes := range []bool{false, true, false, false} {
			hangs <- yes
		}
		n := &Notifier{socket: "/none/s", every: 15 * time.Second, log: slog.New(slog.DiscardHandler)}
		log := new(bytes.Buffer)
		n.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		began := time.Now()
		var asked []time.Duration
		ctx, stop := context.WithCancel(t.Context())
		n.Live(ctx, func(_ context.Context, within time.Duration) bool {
			asked = append(asked, time.Since(began))
			if len(asked) == 4 {
				stop()
			}
			return within == 15*time.Second && !<-hangs
		})
		if want := []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second}; !slices.Equal(asked, want) {
			t.Errorf("asked at %v", asked)
		}
		// Nobody listens, so each sign is a line of the log.
		if signs := strings.Count(log.String(), `state="WATCHDOG=1"`); signs != 3 || strings.Count(log.String(), "no sign of life") != 1 {
			t.Errorf("%d signs\n%s", signs, log)
		}
	})
}
