package orchestrator

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skein/sandbox"
	"skein/worktree"
)

// layered opens the box of a copy in layers that holds the file a.
func layered(t *testing.T) *layeredBox {
	t.Helper()
	if err := sandbox.ExamineLayers(t.Context()); err != nil {
		if os.Getenv("SKEIN_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("as it was\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "a"}, {"commit", "-qm", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	repo, err := worktree.Open(t.Context(), dir, worktree.Options{
		Cache: t.TempDir(), Session: "s1", Run: "1", Backend: worktree.Overlay, Layers: sandbox.ExamineLayers,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := repo.Close(context.Background()); err != nil {
			t.Errorf("close the repository: %v", err)
		}
	})
	snap, err := repo.Tree().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := repo.Copy(t.Context(), snap, "0.1")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{o: Options{Boxes: Boxes{Environ: os.Environ()}}.withDefaults(), dir: dir, repo: repo}
	s := copySite(c, dir)
	l, err := openLayers(t.Context(), r.policy(s, true), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return l
}

// current is the box of l.
func current(t *testing.T, l *layeredBox) *sandbox.Box {
	t.Helper()
	if err := l.take(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	defer l.lock.Release(one)
	return l.box
}

// ended is the box of l, which is ended.
func ended(t *testing.T, l *layeredBox) *sandbox.Box {
	t.Helper()
	box := current(t, l)
	if err := box.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	return box
}

// A box that has ended is replaced for whoever comes next, though the command that found it so
// was cancelled.
func TestLayersAreShownAgain(t *testing.T) {
	l := layered(t)
	old := ended(t, l)
	if _, err := l.Run(t.Context(), sandbox.Command{Argv: []string{"true"}}); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Run in a box that has ended = %v, want ErrEnded", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Run(cancelled, sandbox.Command{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a cancelled context = %v, want that", err)
	}
	if err := l.WriteFile("b", []byte("new\n"), 0o644); err != nil {
		t.Errorf("WriteFile afterwards = %v", err)
	}
	if l.box == old { // nobody else uses it here
		t.Error("the box that has ended is still in use")
	}
	out, err := l.Run(t.Context(), sandbox.Command{Argv: []string{"cat", "a", "b"}})
	if want := "as it was\nnew\n"; err != nil || string(out.Stdout) != want {
		t.Errorf("Run afterwards = %q, %v, want %q", out.Stdout, err, want)
	}
}

// Where no other box can be opened, that is what everybody is told, until one can be.
func TestLayersTellWhyTheyAreNotShown(t *testing.T) {
	l := layered(t)
	l.drop(ended(t, l))
	program := l.policy.Init
	l.policy.Init = "/nowhere/skein-init"
	for range 2 {
		if _, err := l.Open("a"); err == nil || errors.Is(err, errEnded) || !strings.Contains(err.Error(), "/nowhere") {
			t.Errorf("Open without a box = %v, want why there is none", err)
		}
	}
	l.policy.Init = program
	f, err := l.Open("a")
	if err != nil {
		t.Fatalf("Open = %v, want another try", err)
	}
	_ = f.Close()
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := l.Open("a"); !errors.Is(err, errEnded) {
		t.Errorf("Open after Close = %v, want errEnded", err)
	}
}

// Who waits for the box, while it is used for long and has to be replaced, waits no longer than
// he likes.
func TestWaitForTheBoxCanBeCancelled(t *testing.T) {
	l := layered(t)
	used, done := make(chan struct{}), make(chan struct{})
	var users sync.WaitGroup
	users.Go(func() {
		if err := l.use(t.Context(), func() error { close(used); <-done; return nil }); err != nil {
			t.Errorf("use = %v", err)
		}
	})
	<-used
	l.drop(ended(t, l))
	cancelled, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if _, err := l.Run(cancelled, sandbox.Command{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v, want that it was cancelled", err)
			}
		})
	}
	cancel()
	waiting.Wait() // for ever, if they wait for the user
	close(done)
	users.Wait()
	if _, err := l.Run(t.Context(), sandbox.Command{Argv: []string{"true"}}); err != nil {
		t.Errorf("Run afterwards = %v", err)
	}
}

// While something uses the tree, what shows it stays, and the path leads there.
func TestTreeStaysWhileItIsUsed(t *testing.T) {
	l := layered(t)
	s := site{tree: l.copy.Tree(), shown: l}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { // takes numbers of descriptors that become free
			for {
				select {
				case <-stop:
					return
				default:
				}
				if d, err := os.Open("/"); err == nil {
					_ = d.Close()
				}
			}
		})
	}
	for range 5 {
		within, given := make(chan struct{}), make(chan struct{})
		var user sync.WaitGroup
		user.Go(func() {
			err := s.onTree(t.Context(), func(tree *worktree.Tree) error {
				close(within)
				<-given // from now on another box is to be opened
				for range 200 {
					if _, err := os.ReadFile(filepath.Join(tree.Root, "a")); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("the tree: %v", err)
			}
		})
		<-within
		old := current(t, l)
		l.drop(old)
		close(given)
		if _, err := l.Lstat("a"); err != nil {
			t.Errorf("Lstat = %v", err)
		}
		user.Wait()
		if current(t, l) == old {
			t.Error("the box that was given up is still in use")
		}
	}
	close(stop)
	wg.Wait()
}
