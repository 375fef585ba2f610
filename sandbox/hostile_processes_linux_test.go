package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A command neither sees nor touches processes outside of its box, and none inside by the
// means of a debugger.
func TestHostileProcesses(t *testing.T) {
	rows := []attempt{
		{name: "signal", script: "try signal $PID"},
		{name: "stop", script: "kill -STOP $PID", control: "kill -STOP $PID; kill -CONT $PID"},
		{name: "kill", script: "kill -KILL $PID", control: "sleep 60 & kill -KILL $!"},
		{name: "priority", script: "try priority $PID"},
		{name: "affinity", script: "try affinity $PID"},
		{name: "limits", script: "try prlimit $PID"},
		{name: "trace", script: "try attach $PID"},
		{name: "trace, seized", script: "try seize $PID", control: "sleep 0.2 & try seize $!"},
		{name: "memory", script: "try vmread $PID"},
		{name: "memory by file", script: "head -c 1 /proc/$PID/maps"},
		{name: "compare", script: "try kcmp $PID", absent: noCall("kcmp")},
		{name: "take a descriptor", script: "try pidfd $PID"},
		{name: "environment", script: "grep -q . /proc/$PID/environ"},
		{name: "arguments", script: "grep -q . /proc/$PID/cmdline"},
		{name: "descriptors", script: "ls /proc/$PID/fd/ | grep ."},
		{name: "root", script: "ls /proc/$PID/root/ | grep ."},
		{name: "folder", script: "ls /proc/$PID/cwd/ | grep ."},
		{name: "program", script: "readlink /proc/$PID/exe || { echo found nothing; exit 1; }"},
		{name: "memory's score", script: "echo 500 > /proc/$PID/oom_score_adj", control: "sleep 0.2 & echo 500 > /proc/$!/oom_score_adj"},
		{name: "be traced", script: "try traceme"},
		{name: "trace a sibling", script: "sleep 5 & try attach $!"},
		{name: "memory of a sibling", script: "sleep 5 & try vmread $!"},
		{name: "descriptor of a sibling", script: "sleep 5 & try pidfd $!"},
		{name: "memory of a sibling by file", script: "sleep 5 & head -c 0 /proc/$!/mem && echo > /proc/$!/mem", control: "sleep 5 & exec 3>/proc/$!/mem"},
	}
	// Pid 1 is the init of the box there, and what serves as one here need not be ours: the
	// control is the process outside.
	for name, script := range map[string]string{
		"memory": "try vmread %s", "limits": "try prlimit %s", "environment": "cat /proc/%s/environ", "descriptors": "readlink /proc/%s/fd/0 || { echo found nothing; exit 1; }",
		"a descriptor taken": "try pidfd %s", "root": "ls /proc/%s/root/", "folder": "ls /proc/%s/cwd/", "maps": "head -c 1 /proc/%s/maps",
		"program": "readlink /proc/%s/exe || { echo found nothing; exit 1; }", "trace": "try attach %s", "compare": "try kcmp %s",
		"priority":  "for t in /proc/%s/task/*; do try priority ${t##*/} && exit 0; done; exit 1",
		"affinity":  "for t in /proc/%s/task/*; do try affinity ${t##*/} && exit 0; done; exit 1",
		"scheduler": "chrt -b -p 0 %s", "disks": "ionice -c 3 -p %s",
		"score": "s=$(cat /proc/%[1]s/oom_score_adj); echo $s > /proc/%[1]s/oom_score_adj",
	} {
		rows = append(rows, attempt{name: name + " of pid 1", script: fmt.Sprintf(script, "1"), control: fmt.Sprintf(script, "$PID")})
	}
	hostile(t, rows, func(t *testing.T, w *world) {
		cmd := exec.CommandContext(t.Context(), "sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := cmd.Process.Kill(); err != nil {
				t.Errorf("the process outside has ended: %v", err)
			}
			_ = cmd.Wait()
		})
		w.more = append(w.more, fmt.Sprintf("PID=%d", cmd.Process.Pid))
	})
}

// noCall says so if this machine does not know a call that needs no privilege on oneself.
func noCall(name string) string {
	if err := tries[name]([]string{strconv.Itoa(os.Getpid())}); errors.Is(err, unix.ENOSYS) {
		return "this machine has no " + name
	}
	return ""
}
