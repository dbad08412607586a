package rotation

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCopies: the newest copies stay, and so does everything that is none of them.
func TestCopies(t *testing.T) {
	t.Parallel()
	c := Copies{t.TempDir(), "a-"}
	now := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	if wait := c.UntilNext(time.Hour, now); wait != 0 {
		t.Errorf("there is none: the next is due in %v", wait)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	at := func(day int) string { return filepath.Base(c.Path(now.AddDate(0, 0, day))) }
	for _, name := range []string{at(-3), at(-2), at(-1), at(1), at(-1) + ".new-1", "a-b-" + at(-1)[2:], "a-.db"} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.ClearAway()
	if err := c.Prune(2, now); err != nil {
		t.Error(err)
	}
	made, err := c.Made(now)
	if err != nil || len(made) != 2 || made[0].Name != at(-2) || made[1].Name != at(-1) {
		t.Errorf("%v, %v", made, err)
	}
	if files, _ := os.ReadDir(c.Dir); len(files) != 5 {
		t.Errorf("%v are left", files)
	}
	if wait := c.UntilNext(25*time.Hour, now); wait != time.Hour {
		t.Errorf("the next is due in %v", wait)
	}
	if err := (Copies{filepath.Join(c.Dir, at(-1)), "a-"}).Check(); !errors.Is(err, ErrNoDirectory) {
		t.Errorf("a file in place of the directory: %v", err)
	}
}
