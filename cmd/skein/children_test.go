package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	crowdSize    = 1000
	crowdCalls   = 3
	crowdLatency = 500 * time.Millisecond
)

// BenchmarkThousandChildren has one parent send a thousand readers in one reply, all at work
// at once, with the scripted model in a process of its own that takes half a second for each
// reply: 2 s for a child with three calls, and two replies of the parent. It prints how often
// that ideal the run took, and the memory of all of skein's processes together; once where
// readers use file tools, and once with one command each, which run in a box.
func BenchmarkThousandChildren(b *testing.B) {
	dir := b.TempDir()
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", dir+"/bin/", "skein/cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	for _, kind := range []struct{ name, call string }{
		{"files", "read_file: {path: a.txt}"},
		{"bash", "bash: {command: cat a.txt}"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			model := serveCrowd(b, dir, kind.call)
			for b.Loop() {
				c := runCrowd(b, dir, model)
				ideal := crowdLatency * (crowdCalls + 1 + 2)
				b.ReportMetric(c.wall.Seconds()/ideal.Seconds(), "x-ideal")
				b.ReportMetric(c.wall.Seconds(), "s-wall")
				b.ReportMetric(c.cpu.Seconds(), "s-CPU")
				b.ReportMetric(float64(c.memory)/1e6, "MB-PSS")
			}
		})
	}
}

// serveCrowd starts the model and returns its address.
func serveCrowd(b *testing.B, dir, call string) string {
	b.Helper()
	var script strings.Builder
	fmt.Fprintf(&script, "- when: {agent: \"0\", turn: 1}\n  latency: %s\n  calls:\n", crowdLatency)
	for range crowdSize {
		script.WriteString("    - delegate_task: {task: look at a.txt}\n")
	}
	fmt.Fprintf(&script, "- when: {agent: \"0\"}\n  latency: %s\n  say: done\n", crowdLatency)
	calls := []string{call, "read_file: {path: b.txt}", "list_files: {path: .}"}
	for i, call := range calls {
		fmt.Fprintf(&script, "- when: {agent: \"0.*\", turn: %d}\n  latency: %s\n  call: {%s}\n", i+1, crowdLatency, call)
	}
	fmt.Fprintf(&script, "- latency: %s\n  say: done\n", crowdLatency)
	file := filepath.Join(b.TempDir(), "crowd.yaml")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	serve := exec.CommandContext(b.Context(), dir+"/bin/skein", "model", "serve", "--script", file)
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = serve.Process.Signal(os.Interrupt) // it has nothing to lose
		_ = serve.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the model says no address: %v", err)
	}
	return strings.TrimSpace(line)
}

// A crowdCost is what one run took.
type crowdCost struct {
	wall, cpu time.Duration
	memory    int64 // bytes, of all of its processes, at most
}

func runCrowd(b *testing.B, dir, model string) (c crowdCost) {
	b.Helper()
	work := b.TempDir()
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte("a line\n"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	run := exec.CommandContext(b.Context(), dir+"/bin/skein", "run", "--model", "script", "--base-url", model, "--access", "read-only",
		"--jobs", strconv.Itoa(crowdSize), "--max-children", strconv.Itoa(crowdSize), "look")
	run.Dir = work
	var said bytes.Buffer
	run.Stdout, run.Stderr = io.Discard, &said
	began := time.Now()
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	peak := make(chan int64)
	go func() { peak <- mostMemory(ctx, run.Process.Pid) }() // received just below
	err := run.Wait()
	c.wall = time.Since(began)
	stop()
	c.memory = <-peak
	if err != nil {
		b.Fatalf("run: %v\n%s", err, said.Bytes()[max(0, said.Len()-2000):])
	}
	use := run.ProcessState.SysUsage().(*syscall.Rusage)
	c.cpu = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	return c
}

// mostMemory watches a process and its descendants until ctx ends, and returns the most that
// they had at a time: proportional set sizes, in bytes.
func mostMemory(ctx context.Context, pid int) (most int64) {
	for tick := time.NewTicker(250 * time.Millisecond); ; { // to add up takes milliseconds of the two processors
		select {
		case <-ctx.Done():
			tick.Stop()
			return most
		case <-tick.C:
			most = max(most, memoryOf(pid))
		}
	}
}

func memoryOf(pid int) (sum int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel wrote it
			sum += kib << 10
		}
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is a good one
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // that thread has ended
		}
		for child := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				sum += memoryOf(n)
			}
		}
	}
	return sum
}
