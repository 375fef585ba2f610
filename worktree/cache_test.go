package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"skein/worktree"
)

func TestHomeThatHoldsNoCache(t *testing.T) {
	homes := []string{"the repository", "missing", "a file"}
	if os.Getuid() != 0 { // who can make a folder anywhere
		homes = append(homes, "another's")
	}
	for _, home := range homes {
		t.Run(home, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "proj/a", "a\n")
			l.commit()
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			t.Setenv("XDG_CACHE_HOME", "")
			t.Setenv("HOME", "")
			switch home {
			case "the repository":
				t.Setenv("HOME", l.root)
			case "a file":
				file := t.TempDir() + "/home"
				l.check(os.WriteFile(file, nil, 0o600))
				t.Setenv("HOME", file)
			case "another's":
				t.Setenv("HOME", "/nonexistent")
			}
			r, err := worktree.Open(t.Context(), l.root+"/proj", worktree.Options{Layers: layers()})
			l.check(err)
			cache := fmt.Sprintf("%s/skein-%d", temp, os.Getuid())
			if _, err := os.Lstat(cache); err == nil {
				t.Errorf("Open made %s, want it to make nothing", cache)
			}
			s := l.snapshot(r.Tree())
			if info, err := os.Lstat(cache); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v, want a folder for us only", cache, info, err)
			}
			for _, dir := range r.Private()[:3] { // behind them are the stores
				if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !strings.HasPrefix(dir, cache+"/") {
					t.Errorf("Private has %s: %v, want a folder in %s", dir, err, cache)
				}
			}
			c := l.copy(r, s, "0.1")
			if !strings.HasPrefix(folder(c), r.Private()[0]+"/") {
				t.Errorf("copy at %s, want it in the first of %q", folder(c), r.Private())
			}
			l.write(c.Root, "proj/a", "child\n")
			l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
			l.drop(c)
			l.close(r)
		})
	}
}

func TestFallbackCacheOfSomebodyElse(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	cache := fmt.Sprintf("%s/skein-%d", temp, os.Getuid())
	elsewhere := t.TempDir()
	l.check(os.Chmod(elsewhere, 0o700))
	open := func() (*worktree.Repo, error) {
		return worktree.Open(t.Context(), l.root, worktree.Options{Session: "s"})
	}
	early, err := open()
	l.check(err)
	for what, plant := range map[string]func() error{
		"open to others": func() error { return errors.Join(os.Mkdir(cache, 0o700), os.Chmod(cache, 0o770)) },
		"a link":         func() error { return os.Symlink(elsewhere, cache) },
		"another's": func() error {
			return errors.Join(os.Mkdir(cache, 0o700), os.Chown(cache, 65534, 65534))
		},
	} {
		if what == "another's" && os.Getuid() != 0 {
			continue // an ordinary user cannot make one
		}
		l.check(plant())
		if _, err := open(); !errors.Is(err, worktree.ErrUnavailable) {
			t.Errorf("%s: Open = %v, want ErrUnavailable", what, err)
		}
		// It was not there yet when this one was opened.
		if _, err := early.Tree().Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "only you") {
			t.Errorf("%s: Snapshot = %v, want the folder refused", what, err)
		}
		l.check(os.RemoveAll(cache))
	}
	t.Setenv("TMPDIR", l.root)
	if _, err := open(); !errors.Is(err, worktree.ErrUnavailable) {
		t.Errorf("Open with every folder in the repository = %v, want ErrUnavailable", err)
	}
}
