package sandbox_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// Guests of a box do not meet in what each has of its own, and one that leaves takes that and
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
			script := fmt.Sprintf("echo %d | tee /tmp/same /dev/shm/same >/dev/null; mkdir /tmp/d && mktemp >/dev/null; cat $TMPDIR/same /dev/shm/same; ls /tmp /dev/shm | grep -c same", i)
			if got, want := must(t, g, script), fmt.Sprintf("%d\n%[1]d\n2\n", i); got != want {
				t.Errorf("guest %d printed %q, want %q", i, got, want)
			}
			start(t, g, bash("sleep "+m))
		})
	}
	wg.Wait()
	start(t, box, bash("sleep "+m))
	eventually(t, 5*time.Second, "all nine have become sleep", func() bool { return alive(t, "sleep\x00"+m) == 9 })
	if got := must(t, box, "cd /tmp; ls -d same d /dev/shm/same 2>/dev/null; echo none"); got != "none\n" {
		t.Errorf("the box itself sees %q of its guests", got)
	}
	if err := guests[3].Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if n := alive(t, "sleep\x00"+m); n != 8 {
		t.Errorf("%d processes run after one guest left, want 8", n)
	}
	if _, err := guests[3].Run(t.Context(), bash("true")); !errors.Is(err, os.ErrClosed) || errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Run of a guest that left = %v, want os.ErrClosed and not ErrEnded: the box goes on", err)
	}
	if got := must(t, guests[4], "cat /tmp/same /dev/shm/same"); got != "4\n4\n" {
		t.Errorf("a guest that stayed has %q, want its own", got)
	}
	must(t, guest(t, box, "0.4"), "test -z \"$(ls /tmp /dev/shm | grep same)\"") // the name is free again
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
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	guest(t, box, "taken")
	for name, free := range map[string]bool{"": false, "taken": false, "../x": true} {
		if g, err := box.Guest(name); (err == nil) != free {
			t.Errorf("Guest(%q) = %v, want it free: %v", name, err, free)
		} else if free {
			must(t, g, "true")
		}
	}
}

// What a guest has of its own goes when it does, whatever it left there.
func TestWhatAGuestLeftIsGone(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	stays, leaves := guest(t, box, "stays"), guest(t, box, "leaves")
	m := mark()
	start(t, stays, bash("echo x > /tmp/f; sleep "+m))
	start(t, leaves, bash("echo x > /tmp/f; chmod 0 /tmp/f; mkdir -m 0 /tmp/d; echo x > /dev/shm/f; sleep "+m+"1"))
	gone := func(number string) <-chan uint32 {
		t.Helper()
		eventually(t, 5*time.Second, "it sleeps", func() bool { return alive(t, "sleep\x00"+number+"\x00") == 1 })
		pid := pids(t, "sleep\x00"+number+"\x00")[0]
		watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		// A watch keeps no file system from going.
		if _, err := unix.InotifyAddWatch(watch, fmt.Sprintf("/proc/%d/root/tmp", pid), unix.IN_ATTRIB); err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(watch), "watch")
		t.Cleanup(func() { _ = f.Close() })
		events := make(chan uint32, 1)
		go func() { // ends with the file
			var event unix.InotifyEvent
			if err := binary.Read(f, binary.NativeEndian, &event); err == nil {
				events <- event.Mask
			}
		}()
		return events
	}
	left, kept := gone(m+"1"), gone(m)
	if err := leaves.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case mask := <-left:
		if mask&unix.IN_UNMOUNT == 0 {
			t.Errorf("event %#x, want the file system to be gone", mask)
		}
	case <-time.After(10 * time.Second):
		t.Error("the /tmp of a guest that left is still there")
	}
	select {
	case mask := <-kept:
		t.Errorf("event %#x on the /tmp of the guest that stays", mask)
	default:
	}
	must(t, stays, "cat /tmp/f")
}

// A guest sees in its own /tmp what the box shows there, under the same policy.
func TestGuestSeesWhatIsShownInTmp(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "guest-test-") // wherever temporary folders of tests are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"work/f", "work/secret/f", "other/f"} {
		write(t, filepath.Join(dir, name), name+"\n")
	}
	link(t, "work", filepath.Join(dir, "soft"))
	box := open(t, sandbox.Policy{
		Workspace: filepath.Join(dir, "soft"), View: filepath.Join(dir, "soft"), Writable: true, Hidden: []string{"secret"},
		ReadOnly: []sandbox.Mount{{Host: filepath.Join(dir, "other")}},
	})
	script := fmt.Sprintf("cat f %[1]s/soft/f %[1]s/other/f; ls secret; touch %[1]s/other/new 2>/dev/null || echo refused; echo >> f", dir)
	for name, in := range map[string]runner{"box": box, "guest": guest(t, box, "g")} {
		write(t, filepath.Join(dir, "work/f"), "work/f\n")
		if got := must(t, in, script); got != "work/f\nwork/f\nother/f\nrefused\n" {
			t.Errorf("%s sees %q", name, got)
		}
	}
}

// What a guest leaves in its HOME is obeyed by nobody else: by a .gitconfig or a .bashrc it would
// run programs in the commands of others. Caches are as warm as before.
func TestGuestsHaveHomesOfTheirOwn(t *testing.T) {
	needProgram(t, "git")
	home, env := bareHome(t)
	write(t, filepath.Join(home, ".cargo/warm"), "warm\n")
	for _, uid := range []int{os.Geteuid(), nobody} { // the second as root only
		if uid != os.Geteuid() && os.Geteuid() != 0 {
			continue
		}
		dir := t.TempDir()
		must(t, outside(t, dir), "git init -q . && chmod 755 . ..")
		if os.Geteuid() == 0 {
			must(t, outside(t, dir), fmt.Sprintf("chown -R %d:%[1]d .", uid))
		}
		box := open(t, sandbox.Policy{Workspace: dir, Env: env, Git: [2]string{"Ada", "ada@example.org"}})
		a, b := guest(t, box, "a"), guest(t, box, "b")
		const plant = `printf '#!/bin/sh\necho ran >&2\n' > ~/x && chmod 755 ~/x && git config --global core.fsmonitor ~/x && git config --global user.name Eve &&
			mkdir -p ~/.config/git && echo x > ~/.config/git/attributes && cp .git/HEAD ~/.bashrc; `
		const look = "git status 2>&1 | grep -x ran; git config user.name; cat $CARGO_HOME/warm; ls -A ~ && touch ~/mine && rm ~/mine"
		if got := must(t, a, plant+look); got != "ran\nEve\nwarm\n.bashrc\n.config\n.gitconfig\nx\n" {
			t.Fatalf("control: as %d the guest itself sees %q", uid, got)
		}
		for name, in := range map[string]runner{"another guest": b, "the box": box} {
			if got := must(t, in, look); got != "Ada\nwarm\n.gitconfig\n" {
				t.Errorf("as %d %s sees %q, want nothing of the first one's home", uid, name, got)
			}
		}
		must(t, a, "echo new > $CARGO_HOME/new")
		if got := must(t, b, "cat $CARGO_HOME/new"); got != "new\n" {
			t.Errorf("as %d a cache shows %q, want that of all guests", uid, got)
		}
	}
}

// A guest reaches another one's processes by no means that changes or reads them, though both
// run as the same user, and its own by those that need no tracing.
func TestGuestsDoNotMeddle(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	if box.Held().Landlock < 6 {
		need(t, false, "this kernel's Landlock does not keep signals inside")
	}
	m := mark()
	a, b := guest(t, box, "a"), guest(t, box, "b")
	for _, g := range []*sandbox.Guest{a, b} {
		start(t, g, bash("sleep "+m+" & wait"))
	}
	eventually(t, 5*time.Second, "both have become sleep", func() bool { return alive(t, "sleep\x00"+m) == 2 })
	const others = "for p in $(pgrep -x sleep); do %s; done"
	for _, row := range []struct{ script, want string }{
		{"kill -0 $p 2>/dev/null && echo yes || echo no", "yes no"},
		{"readlink /proc/$p/cwd >/dev/null && echo yes || echo no", "yes no"},
		{"readlink /proc/$p/fd/0 >/dev/null && echo yes || echo no", "yes no"},
		{"cat /proc/$p/environ >/dev/null 2>&1 && echo yes || echo no", "yes no"},
		{"ls -d /proc/$p/root/tmp >/dev/null 2>&1 && echo yes || echo no", "yes no"},
	} {
		got := strings.Fields(must(t, a, fmt.Sprintf(others, row.script)))
		slices.Sort(got)
		slices.Reverse(got)
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s for processes of its own and of the other guest: %q, want %q", row.script, got, row.want)
		}
	}
	must(t, a, "pkill -KILL sleep; true")
	eventually(t, 5*time.Second, "its own is gone", func() bool { return alive(t, "sleep\x00"+m) == 1 })
}

// What guests keep in their /tmp and /dev/shm is bounded for all of them together. Who has most
// loses it, with what it runs; nobody else does.
func TestGuestsShareOneRoom(t *testing.T) {
	const most = 100 << 20 // 25 MiB for each place, 50 for the places of all guests
	fill := func(size string) string {
		return "head -c " + size + " /dev/zero > /tmp/f; head -c " + size + " /dev/zero > /dev/shm/f; stat -c %s /tmp/f /dev/shm/f; "
	}
	for _, row := range []struct{ name, script, control string }{
		{"bytes", fill("22m"), "23068672\n23068672\n"},
		{"empty files", fill("1m") + "mkdir /tmp/d; cd /tmp/d; for i in $(seq 10); do mkdir $i; touch $i/{1..4096}; done; find . -type f | wc -l; ", "1048576\n1048576\n40960\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			box := open(t, sandbox.Policy{Workspace: t.TempDir(), Limits: sandbox.Limits{Memory: most}})
			hog := guest(t, box, "hog")
			if got := must(t, hog, row.script+"sleep 0.5"); got != row.control {
				t.Fatalf("control: alone it has %.200q, want %q", got, row.control)
			}
			must(t, hog, "rm -rf /tmp/f /tmp/d /dev/shm/f")

			keeps, runs := guest(t, box, "keeps"), guest(t, box, "runs")
			must(t, keeps, fill("5m"))
			must(t, runs, fill("5m"))
			p := start(t, runs, bash("sleep 60"))
			beside := start(t, hog, bash("sleep 60")) // of the one that is to be ended
			o, err := hog.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", row.script + "sleep 10"}})
			if err != nil || o.Killed != "memory" {
				t.Errorf("Run = killed %q, %v, want memory; output %.200q", o.Killed, err, o.Combined)
			}
			<-beside.Done()
			if out, err := beside.Result(); err != nil || out.Killed != "memory" {
				t.Errorf("another command of the same guest: killed %q, %v, want memory", out.Killed, err)
			}
			if got := must(t, hog, "find /tmp /dev/shm -type f | head -n 3"); got != "" {
				t.Errorf("its next command finds %q", got)
			}
			if got := must(t, keeps, "stat -c %s /tmp/f /dev/shm/f"); got != "5242880\n5242880\n" {
				t.Errorf("who kept within it has %q", got)
			}
			must(t, runs, "cat /tmp/f /dev/shm/f | wc -c")
			select {
			case <-p.Done():
				t.Error("another guest's command was ended")
			default:
			}
		})
	}
}

// A guest that runs nothing and has most is the one that loses it.
func TestIdleGuestsPay(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Limits: sandbox.Limits{Memory: 100 << 20}})
	idle, other := guest(t, box, "idle"), guest(t, box, "other")
	must(t, idle, "head -c 22m /dev/zero > /tmp/f; head -c 22m /dev/zero > /dev/shm/f; sleep 0.3; cat /tmp/f | wc -c")
	o, err := other.Run(t.Context(), bash("head -c 15m /dev/zero > /tmp/f; sleep 0.5; stat -c %s /tmp/f"))
	if err != nil || o.Killed != "" || string(o.Stdout) != "15728640\n" {
		t.Errorf("Run = %q, killed %q, %v, want it to go on", o.Stdout, o.Killed, err)
	}
	if got := must(t, idle, "find /tmp /dev/shm -type f | head -n 3"); got != "" {
		t.Errorf("the one with most has %q, want nothing", got)
	}
}
