package worktree_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"skein/worktree"
)

// Size of the tree that is measured: that of a large repository.
const (
	benchFiles   = 25_000
	benchFolders = 2_500
	benchSize    = 20_000 // of the largest file; on average half of that
	benchWriters = 16
)

// BenchmarkWriters takes a dirty tree through a batch of writers, once with copies made in
// each way, and does the same with git beside it. It works in SKEIN_BENCH_DIR, or in the
// folder for temporary files. make bench-worktrees runs it on disk and in memory.
func BenchmarkWriters(b *testing.B) {
	dir, err := os.MkdirTemp(os.Getenv("SKEIN_BENCH_DIR"), "bench")
	check(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	b.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	b.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	root := filepath.Join(dir, "tree")
	check(b, os.Mkdir(root, 0o755))
	grow(b, root)
	for _, way := range []string{worktree.Overlay, worktree.Fresh} {
		b.Run(way, func(b *testing.B) { benchWay(b, root, filepath.Join(dir, "cache-"+way), way) })
	}
	b.Run("git", func(b *testing.B) { benchGit(b, root, filepath.Join(dir, "git")) })
}

func benchWay(b *testing.B, root, cache, way string) {
	ctx := b.Context()
	for b.Loop() {
		calls := 0 // of git
		count := func(point string) error {
			if strings.HasPrefix(point, "before git ") {
				calls++
			}
			return nil
		}
		// A box is not opened: that it costs the same whatever the tree is measured there.
		r, err := worktree.Open(ctx, root, worktree.Options{Cache: cache, Backend: way, Layers: func(context.Context) error { return nil }, Fault: count})
		check(b, err)
		lap := time.Now()
		took := func(what string, each int) {
			b.ReportMetric(float64(time.Since(lap).Microseconds())/1000/float64(each), what)
			b.ReportMetric(float64(calls)/float64(each), strings.Replace(what, "-ms", "-gits", 1))
			calls, lap = 0, time.Now()
		}
		calls = 0
		_, err = r.Tree().Snapshot(ctx)
		check(b, err)
		took("first-snapshot-ms", 1)
		s, err := r.Tree().Snapshot(ctx)
		check(b, err)
		took("snapshot-ms", 1)
		if way == worktree.Overlay {
			_, err := r.Copy(ctx, s, "cold")
			check(b, err)
			took("base-ms", 1)
		}
		writers := benchWriters
		if way == worktree.Fresh {
			writers = 2 // each is a whole checkout
		}
		before := usage(b, cache)
		lap = time.Now()
		copies := make([]*worktree.Copy, writers)
		var g errgroup.Group
		for i := range copies {
			g.Go(func() (err error) {
				copies[i], err = r.Copy(ctx, s, fmt.Sprint("0.", i+1))
				return err
			})
		}
		check(b, g.Wait())
		took(fmt.Sprintf("%d-writers-ms", writers), 1)
		b.ReportMetric(float64(usage(b, cache)-before)/1024/float64(writers), "kB/writer")
		for i, c := range copies {
			for f := range 20 {
				at := filepath.Join(c.Root, benchName(i*1000+f*7))
				check(b, os.MkdirAll(filepath.Dir(at), 0o755))
				check(b, os.WriteFile(at, []byte(fmt.Sprintf("by %d\n", i)), 0o644))
			}
		}
		lap = time.Now()
		changes := make([]worktree.Change, writers)
		for i, c := range copies {
			changes[i], err = c.Collect(ctx, "work\n")
			check(b, err)
		}
		took("collect-ms/writer", writers)
		onto := s.Commit
		for _, ch := range changes {
			onto, err = r.Merge(ctx, onto, ch)
			check(b, err)
		}
		took("merge-ms/writer", writers)
		_, err = r.Tree().Apply(ctx, s.Commit, onto)
		check(b, err)
		took("apply-ms", 1)
		for _, c := range copies {
			_, err = c.Remove(ctx)
			check(b, err)
		}
		took("remove-ms/writer", writers)
		_, err = r.Close(ctx)
		check(b, err)
		benchRun(b, root, "checkout", "-q", "-f")
		soil(b, root)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMoves takes changes through that move ever more files. What one file costs stays
// the same.
func BenchmarkMoves(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir, err := os.MkdirTemp(os.Getenv("SKEIN_BENCH_DIR"), "bench")
			check(b, err)
			b.Cleanup(func() { _ = os.RemoveAll(dir) })
			root := filepath.Join(dir, "tree")
			for i := range n {
				at := filepath.Join(root, "from", benchName(i))
				check(b, os.MkdirAll(filepath.Dir(at), 0o755))
				check(b, os.WriteFile(at, fmt.Appendf(nil, "file %d\n", i), 0o644))
			}
			benchRun(b, root, "init", "-q", "--template=", "-b", "main")
			benchRun(b, root, "add", "-A")
			benchRun(b, root, "commit", "-q", "-m", "first")
			from, to := "from", "to"
			for b.Loop() {
				r, err := worktree.Open(b.Context(), root, worktree.Options{Cache: filepath.Join(dir, "cache"), Backend: worktree.Fresh})
				check(b, err)
				s, err := r.Tree().Snapshot(b.Context())
				check(b, err)
				c, err := r.Copy(b.Context(), s, "0.1")
				check(b, err)
				check(b, os.Rename(filepath.Join(c.Root, from), filepath.Join(c.Root, to)))
				lap := time.Now()
				took := func(what string) {
					b.ReportMetric(float64(time.Since(lap).Microseconds())/float64(n), what+"-µs/file")
					lap = time.Now()
				}
				ch, err := c.Collect(b.Context(), "work\n")
				check(b, err)
				took("collect")
				merged, err := r.Merge(b.Context(), s.Commit, ch)
				check(b, err)
				took("merge")
				_, err = r.Tree().Apply(b.Context(), s.Commit, merged)
				check(b, err)
				took("apply")
				_, err = c.Remove(b.Context())
				check(b, err)
				_, err = r.Close(b.Context())
				check(b, err)
				from, to = to, from
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func benchGit(b *testing.B, root, dir string) {
	for b.Loop() {
		lap := time.Now()
		took := func(what string) {
			b.ReportMetric(float64(time.Since(lap).Microseconds())/1000, what)
			lap = time.Now()
		}
		benchRun(b, root, "stash", "create")
		took("stash-create-ms")
		benchRun(b, root, "worktree", "add", "-q", "--detach", dir)
		took("worktree-add-ms")
		check(b, os.WriteFile(filepath.Join(dir, benchName(0)), []byte("work\n"), 0o644))
		lap = time.Now()
		benchRun(b, dir, "commit", "-qam", "work")
		took("commit-ms")
		benchRun(b, dir, "checkout", "-q", "--detach", "HEAD^")
		check(b, os.WriteFile(filepath.Join(dir, benchName(1)), []byte("other\n"), 0o644))
		benchRun(b, dir, "commit", "-qam", "other")
		lap = time.Now()
		benchRun(b, dir, "merge", "-q", "--no-edit", "HEAD@{2}")
		took("merge-ms")
		benchRun(b, root, "worktree", "remove", "--force", dir)
		took("worktree-remove-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// benchName is the name of a file of the tree.
func benchName(i int) string {
	i %= benchFiles
	folder := i % benchFolders
	return fmt.Sprintf("src%d/part%d/file%d.txt", folder%50, folder, i)
}

// grow makes a repository of files that are always the same, and edits some.
func grow(b *testing.B, root string) {
	benchRun(b, root, "init", "-q", "--template=", "-b", "main")
	cmd := exec.CommandContext(b.Context(), "git", "-C", root, "fast-import", "--quiet")
	in, err := cmd.StdinPipe()
	check(b, err)
	check(b, cmd.Start())
	w := bufio.NewWriter(in)
	_, _ = fmt.Fprint(w, "commit refs/heads/main\ncommitter A <a@example.org> 1000000000 +0000\ndata 5\nfirst\n")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range benchFiles {
		var text strings.Builder
		for size := random.IntN(benchSize); text.Len() < size; {
			_, _ = fmt.Fprintf(&text, "line %x of file %d\n", random.Uint64(), i)
		}
		_, _ = fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", benchName(i), text.Len(), text.String())
	}
	_, err = io.WriteString(w, "done\n")
	check(b, err)
	check(b, w.Flush())
	check(b, in.Close())
	check(b, cmd.Wait())
	benchRun(b, root, "reset", "-q", "--hard")
	// A moment later: git reads again what was written in the second of its index.
	later := time.Now().Add(2 * time.Second)
	check(b, os.Chtimes(filepath.Join(root, ".git", "index"), later, later))
	soil(b, root)
}

// soil leaves uncommitted work in the tree.
func soil(b *testing.B, root string) {
	for i := range 50 {
		check(b, os.WriteFile(filepath.Join(root, benchName(i*497)), []byte("edited\n"), 0o644))
		check(b, os.WriteFile(filepath.Join(root, fmt.Sprintf("src%d/new%d", i, i)), []byte("new\n"), 0o644))
	}
}

func benchRun(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// usage is how many bytes a folder takes on disk.
func usage(b *testing.B, root string) (total int64) {
	b.Helper()
	check(b, filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if st, ok := info.Sys().(*syscall.Stat_t); err == nil && ok {
			total += st.Blocks * 512
		}
		return err
	}))
	return total
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
