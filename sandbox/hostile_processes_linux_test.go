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
		{name: "signal", want: "ESRCH", script: "try signal $PID"},
		{name: "stop", want: "ESRCH", script: "kill -STOP $PID", control: "kill -STOP $PID; kill -CONT $PID"},
		{name: "kill", want: "ESRCH", script: "kill -KILL $PID", control: "sleep 60 & kill -KILL $!"},
		{name: "priority", want: "ESRCH", script: "try priority $PID"},
		{name: "affinity", want: "ESRCH", script: "try affinity $PID"},
		{name: "limits", want: "ESRCH", script: "try prlimit $PID"},
		{name: "trace", want: "EPERM", script: "try attach $PID"},
		{name: "trace, seized", want: "EPERM", script: "try seize $PID", control: "sleep 0.2 & try seize $!"},
		{name: "memory", want: "EPERM", script: "try vmread $PID"},
		{name: "memory by file", want: "ENOENT", script: "head -c 1 /proc/$PID/maps"},
		{name: "compare", want: "EPERM", script: "try kcmp $PID", absent: noCall("kcmp")},
		{name: "take a descriptor", want: "ESRCH", script: "try pidfd $PID"},
		{name: "environment", want: "ENOENT", script: "grep -q . /proc/$PID/environ"},
		{name: "arguments", want: "ENOENT", script: "grep -q . /proc/$PID/cmdline"},
		{name: "descriptors", want: "ENOENT", script: "ls /proc/$PID/fd/ | grep ."},
		{name: "root", want: "ENOENT", script: "ls /proc/$PID/root/ | grep ."},
		{name: "folder", want: "ENOENT", script: "ls /proc/$PID/cwd/ | grep ."},
		{name: "program", want: "nothing", script: "readlink /proc/$PID/exe || { echo found nothing; exit 1; }"},
		{name: "memory's score", want: "ENOENT", script: "echo 500 > /proc/$PID/oom_score_adj", control: "sleep 0.2 & echo 500 > /proc/$!/oom_score_adj"},
		{name: "be traced", want: "EPERM", script: "try traceme"},
		{name: "trace a sibling", want: "EPERM", script: "sleep 5 & try attach $!"},
		{name: "memory of a sibling", want: "EPERM", script: "sleep 5 & try vmread $!"},
		{name: "descriptor of a sibling", want: "EPERM", script: "sleep 5 & try pidfd $!"},
		{name: "memory of a sibling by file", want: "EROFS", script: "sleep 5 & head -c 0 /proc/$!/mem && echo > /proc/$!/mem", control: "sleep 5 & exec 3>/proc/$!/mem"},
	}
	// Pid 1 is the init of the box there, and what serves as one here need not be ours: the
	// control is the process outside.
	for _, row := range []struct{ name, want, script string }{
		{"memory", "EPERM", "try vmread %s"},
		{"limits", "EPERM", "try prlimit %s"},
		{"environment", "EACCES", "cat /proc/%s/environ"},
		{"descriptors", "nothing", "readlink /proc/%s/fd/0 || { echo found nothing; exit 1; }"},
		{"a descriptor taken", "EPERM", "try pidfd %s"},
		{"root", "EACCES", "ls /proc/%s/root/"},
		{"folder", "EACCES", "ls /proc/%s/cwd/"},
		{"maps", "EACCES", "head -c 1 /proc/%s/maps"},
		{"program", "nothing", "readlink /proc/%s/exe || { echo found nothing; exit 1; }"},
		{"trace", "EPERM", "try attach %s"},
		// Those that start commands are of the same user as these.
		{"any thread's trace", "EPERM", eachThread("try attach $t")},
		{"any thread's memory", "EPERM", eachThread("try vmread $t")},
		{"any thread's memory by file", "EACCES", eachThread("head -c 0 $at/mem")},
		{"any thread's maps", "EACCES", eachThread("head -c 1 $at/maps")},
		{"any thread's environment", "EACCES", eachThread("cat $at/environ")},
		{"any thread's root", "EACCES", eachThread("ls $at/root/")},
		{"any thread's folder", "EACCES", eachThread("ls $at/cwd/")},
		{"any thread's descriptors", "nothing", eachThread("readlink $at/fd/*")},
		{"any thread's program", "nothing", eachThread("readlink $at/exe")},
		{"compare", "EPERM", "try kcmp %s"},
		{"priority", "EPERM", "for t in /proc/%s/task/*; do try priority ${t##*/} && exit 0; done; exit 1"},
		{"affinity", "EPERM", "for t in /proc/%s/task/*; do try affinity ${t##*/} && exit 0; done; exit 1"},
		{"scheduler", "EPERM", "chrt -b -p 0 %s"},
		{"disks", "EPERM", "ionice -c 3 -p %s"},
		{"score", "EROFS", "s=$(cat /proc/%[1]s/oom_score_adj); echo $s > /proc/%[1]s/oom_score_adj"},
	} {
		rows = append(rows, attempt{name: row.name + " of pid 1", want: row.want, script: fmt.Sprintf(row.script, "1"), control: fmt.Sprintf(row.script, "$PID")})
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

// eachThread is a script that fails if what it does fails for all threads of a process.
func eachThread(does string) string {
	return "r=1; for at in /proc/%s/task/*; do t=${at##*/}; " + does + " && r=0; done; [ $r = 0 ] || { echo found nothing; exit 1; }"
}

// noCall says so if this machine does not know a call that needs no privilege on oneself.
func noCall(name string) string {
	if err := tries[name]([]string{strconv.Itoa(os.Getpid())}); errors.Is(err, unix.ENOSYS) {
		return "this machine has no " + name
	}
	return ""
}
