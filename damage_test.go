package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

var (
	damageN    = flag.Int("damage.n", 0, "damaged files to try; 0: a few")
	damageSeed = flag.Uint64("damage.seed", 1, "what damage is chosen by")
)

// helperDir is the environment variable that names the helper's directory.
const helperDir = "SELLO_DAMAGE_DIR"

// TestDamageHelper is not a test: it is what the helper runs. It reads the numbers of
// images, which are damaged files, and writes a trial for each.
func TestDamageHelper(t *testing.T) {
	dir := os.Getenv(helperDir)
	if dir == "" {
		t.Skip("run by TestDamage")
	}
	var victims []*specimen
	raw, err := os.ReadFile(filepath.Join(dir, "victims"))
	if err == nil {
		err = json.Unmarshal(raw, &victims)
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		var image int
		if _, err := fmt.Scan(&image); err != nil {
			return
		}
		line, _ := json.Marshal(victims[image%len(victims)].try(dir, *damageSeed, image))
		fmt.Printf("trial %s\n", line)
	}
}

// A helper is a process that tries images.
type helper struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	errs  bytes.Buffer
	done  int // images
}

func startHelper(t *testing.T, dir string) *helper {
	h := &helper{lines: make(chan string, 1)}
	h.cmd = exec.Command(os.Args[0], "-test.run=^TestDamageHelper$", "-test.timeout=0", fmt.Sprintf("-damage.seed=%d", *damageSeed))
	h.cmd.Env = append(os.Environ(), helperDir+"="+dir)
	h.cmd.Stderr = &h.errs
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if text, ok := strings.CutPrefix(line, "trial "); ok {
				h.lines <- text
			}
			if err != nil {
				close(h.lines)
				return
			}
		}
	}()
	return h
}

// try lets the helper try one image. An error means that the process died or hangs.
func (h *helper) try(image int) (result trial, err error) {
	h.done++
	fmt.Fprintln(h.in, image)
	select {
	case line, ok := <-h.lines:
		if !ok {
			h.cmd.Wait()
			return trial{}, fmt.Errorf("the process died:\n%.3000s", h.errs.String())
		}
		err := json.Unmarshal([]byte(line), &result)
		return result, err
	case <-time.After(forever):
		h.cmd.Process.Signal(syscall.SIGQUIT) // it prints its stacks
		h.cmd.Wait()
		return trial{}, fmt.Errorf("it hangs:\n%.9000s", h.errs.String())
	}
}

func (h *helper) stop() {
	h.in.Close()
	h.cmd.Process.Kill()
	for range h.lines {
	}
	h.cmd.Wait()
}

// helperLife is how many images a helper tries before a new one takes its place. A store
// that has failed is never closed, so a helper leaks.
const helperLife = 100

// fewDamages is how many files the long form of TestDamage tries without -damage.n. The quick
// form tries half of them.
const fewDamages = 12

// TestDamage damages files as a disk or a person may, and runs the commands on them. Each
// command must give the right answer, or say in one line that it cannot. There must never
// be a wrong balance, a stack trace, or a command that does not end.
//
// A fault may kill its process, so another process runs the commands: this test binary
// again, with TestDamageHelper.
func TestDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("makes and serves many files")
	}
	t.Parallel()
	dir := disktest.MemoryDir(t)
	victims := someSpecimens(t)
	raw, err := json.Marshal(victims)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "victims"), raw)
	for _, v := range victims {
		if whole := v.tryFiles(dir, v.Files, "nothing"); whole.Verdict != "right" || !whole.Verified || whole.Wrong != nil {
			t.Fatalf("undamaged: %+v", whole)
		}
	}
	counts := map[string]int{}
	var h *helper
	n := cmp.Or(*damageN, sized(fewDamages, fewDamages/2))
	for image := range n {
		if h == nil {
			h = startHelper(t, dir)
		}
		result, err := h.try(image)
		if err != nil {
			t.Errorf("-damage.seed=%d, image %d: %v", *damageSeed, image, err)
			h, result.Verdict = nil, "died"
		}
		for _, wrong := range result.Wrong {
			t.Errorf("-damage.seed=%d, image %d: %s: %s", *damageSeed, image, result.Damage, wrong)
		}
		counts[result.Verdict]++
		if len(result.Wrong) > 0 {
			counts["wrong"]++
		}
		if !result.Verified {
			counts["told by verify"]++
		}
		if h != nil && h.done == helperLife {
			h.stop()
			h = nil
		}
	}
	if h != nil {
		h.stop()
	}
	t.Logf("seed %d, %d damaged files: %v", *damageSeed, n, counts)
}

// TestDamageControl checks that trials find a wrong balance, a missing account, a missing
// customer, and messages that break the rules.
func TestDamageControl(t *testing.T) {
	if testing.Short() {
		t.Skip("makes and serves many files")
	}
	t.Parallel()
	v := someSpecimens(t)[0]
	change := func(fn func(*txn, *account) error) map[string][]byte {
		path := filepath.Join(t.TempDir(), "sello.db")
		writeFile(t, path, v.Files[""])
		store, err := openBolt(path, disk.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = write(t.Context(), newEngine(store, time.Now, cryptoSeed), 1, instantOf(time.Now()), func(t *txn) (any, error) {
			cust, _ := parseID([]byte(v.Customers[3]))
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			a, err := t.points.storedAccount(c, t.cfg.programNumber(c.Program))
			if err != nil {
				return nil, err
			}
			return nil, fn(t, a)
		})
		if err == nil {
			err = store.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{"": disktest.UsedPages(readFile(t, path))}
	}
	for name, files := range map[string]map[string][]byte{
		"balance": change(func(t *txn, a *account) error {
			a.Balance += decimalOf(1)
			return t.put(t.points.partKey(a, partAccount), a)
		}),
		"account gone": change(func(t *txn, a *account) error { return t.Delete(t.points.partKey(a, partAccount)) }),
		"customer gone": change(func(t *txn, a *account) error {
			return t.Delete(customerKey(t.org, a.customer.ID, partCustomer))
		}),
	} {
		result := v.tryFiles(t.TempDir(), files, name)
		if result.Wrong == nil || result.Verified {
			t.Errorf("%s: %+v", name, result)
		}
	}
	for _, errs := range []string{
		"", "sello: no\nsello: no\n", "panic: runtime error\n\ngoroutine 1 [running]:\n", "sello: the file is damaged\n", "fatal error: fault\n",
	} {
		if faultIn(1, errs) == "" {
			t.Errorf("%q passes", errs)
		}
	}
	if faultIn(2, "sello: archivo dañado\n") == "" || faultIn(1, "sello: archivo dañado\n") != "" || faultIn(0, "") != "" {
		t.Error("words are not told apart")
	}
}
