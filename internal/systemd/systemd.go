// Package systemd speaks to the supervisor of a service, such as systemd (Type=notify). It gives a
// service the name of a datagram socket in its environment. The service says there when it is
// ready and when it stops, and, so long as it is healthy, that it is: else the supervisor starts
// it anew.
package systemd

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"sello/internal/parallel"
)

// A Notifier speaks to the supervisor. A nil one says nothing.
type Notifier struct {
	socket string
	every  time.Duration // between signs of life; 0: none is asked for
	log    *slog.Logger
}

// New returns nil if no supervisor listens. pid is this process's.
func New(getenv func(string) string, pid int, log *slog.Logger) *Notifier {
	n := &Notifier{socket: getenv("NOTIFY_SOCKET"), log: log}
	if n.socket == "" || !strings.HasPrefix(n.socket, "/") && !strings.HasPrefix(n.socket, "@") {
		return nil // vsock: is for virtual machines
	}
	limit, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if of := getenv("WATCHDOG_PID"); err == nil && limit > 0 && (of == "" || of == strconv.Itoa(pid)) {
		n.every = time.Duration(limit) * time.Microsecond / 2
	}
	return n
}

// Say sends a state, such as READY=1. A failure is logged and changes nothing else.
func (n *Notifier) Say(state string) {
	if n == nil {
		return
	}
	// Package net turns the @ of an abstract name into the zero byte that the system wants.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		n.log.Warn("supervisor not told", "state", state, "cause", err.Error())
	}
}

// Live gives signs of life until ctx ends. Before each it asks healthy, which may take no
// longer than it is told.
func (n *Notifier) Live(ctx context.Context, healthy func(context.Context, time.Duration) bool) {
	if n == nil || n.every == 0 {
		return
	}
	say := func() {
		if healthy(ctx, n.every) {
			n.Say("WATCHDOG=1")
		} else if ctx.Err() == nil {
			n.log.Error("no sign of life given to the supervisor: the store does not answer")
		}
	}
	say()
	parallel.Every(ctx, n.every, say)
}
