package sandbox_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// No signal that a command sends to the threads that start commands ends the box: they are of
// the commands' user.
func TestNoSignalEndsTheInit(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	queue := helper + "=try " + program + " queue "
	victim := exec.CommandContext(t.Context(), program)
	victim.Env = []string{helper + "=headless"}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	must(t, outside(t, dir), queue+strconv.Itoa(victim.Process.Pid)+" || true")
	if err := victim.Wait(); err == nil {
		t.Error("control: a program outside lives on")
	}
	box := open(t, sandbox.Policy{Workspace: dir})
	for name, in := range map[string]runner{"box": box, "guest": guest(t, box, "g")} {
		// What make starts ignores two signals above those that have names.
		got := must(t, in, queue+"1 && sleep 0.1; "+"echo alive; trap | grep -c SIG; sed -n 's/SigIgn:\t//p' /proc/self/status")
		last, named := strings.CutPrefix(got, "alive\n0\n")
		ignored, err := strconv.ParseUint(strings.TrimSpace(last), 16, 64)
		if !named || err != nil || ignored&(1<<31-1) != 0 {
			t.Errorf("%s: %q, want it to live on, and nothing that commands ignore", name, got)
		}
	}
	must(t, box, "true")
}

// A command that stops all others, and with them one that is just being started, holds up
// neither the box nor its other guests.
func TestCommandsThatAreStoppedWhileTheyStart(t *testing.T) {
	dir := t.TempDir()
	stop := helper + "=try " + self(t, dir) + " stopall"
	box := open(t, sandbox.Policy{Workspace: dir})
	hostile := guest(t, box, "hostile")
	evil := start(t, hostile, bash("exec env "+stop))
	stopped := 0
	for end := time.Now().Add(20 * time.Second); stopped < 3 && time.Now().Before(end); {
		c := bash("true")
		c.Timeout = 500 * time.Millisecond
		o, err := hostile.Run(t.Context(), c)
		if err != nil {
			t.Fatalf("Run = %v, want the box to go on", err)
		}
		if o.Exit == 128+int(unix.SIGKILL) && o.Killed == "" {
			stopped++ // before it had begun
		}
	}
	if stopped == 0 {
		t.Error("control: no command was stopped while it started")
	}
	if box.Held().Landlock >= 6 {
		must(t, guest(t, box, "other"), "true")
	}
	if err := evil.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	must(t, hostile, "true")
	must(t, box, "true")
}
