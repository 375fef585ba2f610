package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skein/sandbox"
)

func guest(t *testing.T, box *sandbox.Box, name string) *sandbox.Guest {
	t.Helper()
	g, err := box.Guest(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close of guest %s = %v", name, err)
		}
	})
	return g
}

// Guests of a box do not meet in their TMPDIRs, and one that leaves takes what is its own and
// nothing else.
func TestGuests(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	m := mark()
	var guests []*sandbox.Guest
	var wg sync.WaitGroup
	for i := range 8 {
		g := guest(t, box, fmt.Sprintf("0.%d", i+1))
		guests = append(guests, g)
		wg.Go(func() {
			out := must(t, g, fmt.Sprintf("echo %d > $TMPDIR/same; stat -c '%%a %%U' $TMPDIR | grep -qx \"700 $(id -un)\"; mktemp -u; cat $TMPDIR/same", i))
			if want := fmt.Sprintf("/tmp/guest-0.%d/", i+1); !strings.HasPrefix(out, want) || !strings.HasSuffix(out, fmt.Sprintf("\n%d\n", i)) {
				t.Errorf("guest %d printed %q, want a file below %s and its own number", i, out, want)
			}
			start(t, g, bash("sleep "+m))
		})
	}
	wg.Wait()
	start(t, box, bash("sleep "+m))
	eventually(t, 5*time.Second, "all nine have become sleep", func() bool { return alive(t, "sleep\x00"+m) == 9 })
	must(t, guests[3], "mkdir -p $TMPDIR/a/b && touch $TMPDIR/a/b/c && chmod 0 $TMPDIR/a/b $TMPDIR/a && ln -s /run $TMPDIR/soft")
	if err := guests[3].Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if n := alive(t, "sleep\x00"+m); n != 8 {
		t.Errorf("%d processes run after one guest left, want 8", n)
	}
	if got := must(t, box, "cd /tmp; echo guest-*"); got != "guest-0.1 guest-0.2 guest-0.3 guest-0.5 guest-0.6 guest-0.7 guest-0.8\n" {
		t.Errorf("after the fourth guest left there are %q", got)
	}
	if _, err := guests[3].Run(t.Context(), bash("true")); !errors.Is(err, os.ErrClosed) || errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Run of a guest that left = %v, want os.ErrClosed and not ErrEnded: the box goes on", err)
	}
	must(t, guests[4], "rm -r $TMPDIR")
	if got := must(t, guests[4], "echo x > $TMPDIR/f; cat $TMPDIR/f"); got != "x\n" {
		t.Errorf("the TMPDIR that was removed is not there again: %q", got)
	}
	must(t, guest(t, box, "0.4"), "test -z \"$(ls -A $TMPDIR)\"") // the name is free again
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if n := alive(t, "sleep\x00"+m); n != 0 {
		t.Errorf("%d processes are left after the box was closed", n)
	}
	if _, err := guests[0].Run(t.Context(), bash("true")); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Run of a guest of a closed box = %v, want ErrEnded", err)
	}
	if _, err := box.Guest("late"); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Guest of a closed box = %v, want ErrEnded", err)
	}
}

func TestGuestNames(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), View: "/tmp/guest-view/of/it"})
	guest(t, box, "taken")
	for _, name := range []string{"", ".", "..", "a/b", "/a", "a/", "../x", "taken", "view"} {
		if _, err := box.Guest(name); err == nil {
			t.Errorf("Guest(%q) = nil, want an error", name)
		}
	}
}
