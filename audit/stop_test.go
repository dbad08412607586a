package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// longestStop is how long a stop may take, whatever clients do.
	longestStop = 10 * time.Second
	// stopTimeout is how long the server waits for clients: a copy of that in serve.go.
	stopTimeout = 8 * time.Second
)

// TestSIGTERM stops the binary while clients write. What was answered must be stored, and
// the exit code must be 0 within longestStop. A second signal must end it without waiting.
func TestSIGTERM(t *testing.T) {
	seed := newCrashSeed(t)
	binary := builtBinary(t)
	endHanging := stopHanging(t, seed) // takes most of stopTimeout, while other tests run
	t.Parallel()
	t.Run("under load", func(t *testing.T) {
		v := newVictim(t, seed, binary)
		for range 2 {
			load := v.load()
			time.Sleep(time.Duration(v.rng.Int64N(int64(200 * time.Millisecond))))
			began := time.Now()
			v.wantStopped()
			if took := time.Since(began); took > longestStop {
				t.Errorf("it took %v to stop", took)
			}
			if out, err := load(); err != nil {
				t.Fatal(err, out)
			}
			v.start()
			v.audit()
		}
		t.Logf("-crash.seed=%d: %+v", seed, v.figures)
	})

	t.Run("a second signal while a client hangs", func(t *testing.T) {
		v := newVictim(t, seed, binary)
		load := v.load()
		hang(t, v)
		v.server.Process.Signal(syscall.SIGTERM)
		if out, err := load(); err != nil { // the load was refused or cut off by now
			t.Fatal(err, out)
		}
		ended := make(chan error, 1)
		go func() { ended <- v.server.Wait() }()
		select {
		case <-ended:
			t.Fatalf("it did not wait for the client, so the second signal shows nothing\n%s", tail(v.server.Log.String()))
		case <-time.After(500 * time.Millisecond):
		}
		began := time.Now()
		v.server.Process.Signal(syscall.SIGTERM)
		<-ended
		if took, left := time.Since(began), stopTimeout-500*time.Millisecond; took > left/2 {
			t.Errorf("the second signal took %v", took)
		}
		if status, ok := v.server.ProcessState.Sys().(syscall.WaitStatus); ok && (!status.Signaled() || status.Signal() != syscall.SIGTERM) {
			t.Errorf("it ended with %v", v.server.ProcessState)
		}
		v.start()
		v.audit()
		v.wantStopped()
	})

	t.Run("while a client hangs", endHanging)
}

// stopHanging tells a server to stop while a client hangs. The returned test waits for the
// server's end.
func stopHanging(t *testing.T, seed uint64) func(*testing.T) {
	v := newVictim(t, seed, builtBinary(t))
	load := v.load()
	answered := hang(t, v)
	began := time.Now()
	v.server.Process.Signal(syscall.SIGTERM)
	took := make(chan time.Duration, 1)
	go func() {
		v.server.Wait()
		took <- time.Since(began)
	}()
	return func(t *testing.T) {
		v.T = t
		if took := <-took; took > longestStop || took < stopTimeout/2 {
			t.Errorf("it took %v to stop; at most %v is allowed, and if something hangs it takes %v", took, longestStop, stopTimeout)
		}
		v.wantStopped() // the server has ended by now
		if text := answered(); text != "" {
			t.Errorf("a request that was never sent whole got an answer: %s", text)
		}
		if out, err := load(); err != nil {
			t.Fatal(err, out)
		}
		v.start()
		v.audit()
	}
}

// hang sends a part of a request and no more. The returned function reads until the
// connection ends and returns what came.
func hang(t *testing.T, v *victim) (answered func() string) {
	t.Helper()
	base, err := url.Parse(v.server.Base)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", base.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// The server has begun with the request once it asks for the body.
	fmt.Fprintf(conn, "POST %s/customers HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", base.Path, base.Host, v.key)
	goOn := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, goOn); err != nil || !strings.HasPrefix(string(goOn), "HTTP/1.1 100 ") {
		t.Fatalf("%q %v", goOn, err)
	}
	fmt.Fprint(conn, `{"email":`)
	return func() string {
		conn.SetReadDeadline(time.Now().Add(longestStop))
		var text bytes.Buffer
		io.Copy(&text, conn)
		return text.String()
	}
}
