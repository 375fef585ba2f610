package worktree_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/worktree"
)

// A repository that somebody else made must not run anything of theirs.
func TestNothingConfiguredInTheRepositoryRuns(t *testing.T) {
	l := newLab(t)
	traces := t.TempDir()
	spy := func(name string) string { return "touch " + traces + "/" + name + "; false" }
	l.userConfig("[filter \"both\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n")
	l.write(l.root, "text", "1\n2\n3\n")
	l.commit()
	l.write(l.root, ".git/more", fmt.Sprintf(
		"[filter \"included\"]\n\tclean = %[1]q\n\tsmudge = %[1]q\n\trequired\n[filter \"a=b.c\"]\n\tclean = %[2]q\n\tsmudge = %[2]q\n\trequired = 1\n",
		spy("included"), spy("odd")))
	for _, kv := range [][2]string{
		{"include.path", "more"},
		{"filter.local.clean", spy("clean")},
		{"filter.local.smudge", spy("smudge")},
		{"filter.long.process", spy("process")},
		{"filter.long.required", "true"},
		{"filter.both.clean", spy("both")},
		{"extensions.worktreeConfig", "true"},
		{"diff.external", spy("external")},
		{"diff.d.command", spy("command")},
		{"diff.d.textconv", spy("textconv")},
		{"merge.m.driver", spy("driver")},
		{"core.fsmonitor", spy("monitor")},
	} {
		l.git("config", kv[0], kv[1])
	}
	l.git("config", "--worktree", "filter.tree.clean", spy("tree"))
	hooks := l.root + "/.git/hooks"
	for _, hook := range []string{"post-index-change", "reference-transaction", "post-checkout"} {
		l.writeMode(hooks, hook, "#!/bin/sh\n"+spy(hook), 0o755)
	}
	l.write(l.root, ".gitattributes", "local filter=local\nlong filter=long\nincluded filter=included\nodd filter=a=b.c\n"+
		"tree filter=tree\nboth filter=both\n* diff=d merge=m\n")
	names := []string{"local", "long", "included", "odd", "tree", "both"}
	for _, name := range names {
		l.write(l.root, name, "text of "+name+"\n")
	}
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	stored := l.files(l.root)
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), stored)
	for _, name := range names {
		l.write(c.Root, name, "changed "+name+"\n")
	}
	l.write(c.Root, "text", "one\n2\n3\n")
	one := l.collect(c)
	l.drop(c)
	two := l.change(r, s, "0.2", func(dir string) { l.write(dir, "text", "1\n2\nthree\n") })
	m1 := l.merge(r, s.Commit, one)
	l.apply(r.Tree(), s.Commit, m1)
	l.apply(r.Tree(), m1, l.merge(r, m1, two))
	if _, err := r.Diff(t.Context(), one.Base, one.Commit); err != nil {
		t.Errorf("Diff = %v, want no error", err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(l.root + "/" + name); err != nil || string(text) != "changed "+name+"\n" {
			t.Errorf("%s = %q, %v, want what the writer wrote", name, text, err)
		}
	}
	if text, err := os.ReadFile(l.root + "/text"); err != nil || string(text) != "one\n2\nthree\n" {
		t.Errorf("text = %q, %v, want both changes", text, err)
	}
	l.close(r)
	ran, err := filepath.Glob(traces + "/*")
	if err != nil || len(ran) > 0 {
		t.Errorf("of the repository's own programs these ran: %v (%v)", ran, err)
	}
}

// Neither must a store that somebody else made, nor what stands in it as ours.
func TestAPlantedStoreIsNotBelieved(t *testing.T) {
	l := newLab(t)
	trace := t.TempDir() + "/ran"
	l.write(l.root, "text", "1\n2\n3\n")
	l.commit()
	first := l.open(worktree.Options{Session: "first"})
	l.snapshot(first.Tree())
	l.close(first)

	store := l.root + "/.git/skein"
	config, err := os.ReadFile(store + "/config")
	l.check(err)
	l.write(store, "config", string(config)+"[merge \"m\"]\n\tdriver = touch "+trace+"; false\n")
	l.write(store, "info/attributes", "* merge=m\n")
	l.write(store, "commondir", l.root+"/.git\n")
	l.write(store, "objects/info/alternates", "../../objects\n/etc\n")

	// A lease of a dead run that calls the user's documents its copies.
	home := t.TempDir()
	l.write(home, "documents/letter", "precious\n")
	link := t.TempDir() + "/copies"
	l.check(os.Symlink(home, link))
	for run, copies := range map[string]string{"x@1": home, "x@2": link} {
		l.write(store, "runs/"+run+"/lease", fmt.Sprintf(`{"Copies":%q}`, fmt.Sprintf("%q", copies)))
	}

	// Ledgers that roll back what never was.
	type state struct {
		Type string
		Perm os.FileMode
		Sum  string
	}
	type entry struct {
		Path     string
		Old, New state
	}
	sum := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	plant := func(n int, tree, root, path string) {
		text, err := json.Marshal(map[string]any{
			"Tree": fmt.Sprintf("%q", tree), "Root": fmt.Sprintf("%q", root), "Keep": `""`, "Entries": []entry{{
				fmt.Sprintf("%q", path),
				state{"file", 0o644, sum("planted\n")},
				state{"file", 0o644, sum("precious\n")},
			}, {fmt.Sprintf("%q", "none"), state{}, state{"file", 0o644, sum("x")}}},
		})
		l.check(err)
		dir := fmt.Sprintf("%s/runs/x@1/apply-%d", store, n)
		l.write(dir, "old/0", "planted\n")
		l.write(dir, "ledger.json", string(text))
	}
	plant(1, home, home, "documents/letter")
	plant(2, ".", l.root, "../"+filepath.Base(filepath.Dir(home))+"/letter")
	plant(3, "worktrees/..", home, "documents/letter")
	plant(4, "worktrees/x", home, "documents/letter")
	l.write(l.root, ".git/worktrees/x/gitdir", home+"/.git\n")
	plant(5, "copies/..", home, "documents/letter")

	next := l.open(worktree.Options{Session: "next"})
	done, err := next.Recover(t.Context())
	if err != nil || len(done) != 5 || slices.ContainsFunc(done, func(rec worktree.Recovered) bool { return rec.Action != worktree.Failed }) {
		t.Errorf("Recover = %+v, %v, want five ledgers refused", done, err)
	}
	if done, err := next.Recover(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("Recover again = %+v, %v, want nothing", done, err)
	}
	same(t, "documents", l.files(home), map[string]string{"documents/letter": `false "precious\n"`})
	// One for this tree that says another one: it is the tree that counts.
	plant(6, ".", home, "documents/letter")
	if done, err := next.Recover(t.Context()); err != nil || len(done) != 1 || done[0].Action != worktree.RolledBack {
		t.Errorf("Recover = %+v, %v, want the ledger carried out here", done, err)
	}
	same(t, "documents", l.files(home), map[string]string{"documents/letter": `false "precious\n"`})
	l.remove(store, "runs/x@1")
	l.remove(l.root, ".git/worktrees")

	s := l.snapshot(next.Tree())
	one := l.change(next, s, "0.1", func(dir string) { l.write(dir, "text", "one\n2\n3\n") })
	c := l.copy(next, s, "0.2")
	l.write(c.Root, "text", "1\n2\nthree\n")
	for _, dir := range c.Objects {
		if dir == "/etc" {
			t.Errorf("a box would show %s", dir)
		}
	}
	two := l.collect(c)
	m := l.merge(next, l.merge(next, s.Commit, one), two)
	l.apply(next.Tree(), s.Commit, m)
	same(t, "tree", l.files(l.root), map[string]string{"text": `false "one\n2\nthree\n"`})
	l.drop(c)
	l.close(next)
	if _, err := os.Lstat(trace); err == nil {
		t.Errorf("the merge driver ran")
	}

	l.check(os.Rename(store+"/runs", home+"/runs"))
	l.check(os.Symlink(home+"/runs", store+"/runs"))
	last := l.open(worktree.Options{Session: "last"})
	if _, err := last.Tree().Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "is not ours") {
		t.Errorf("Snapshot with a store that leads elsewhere = %v, want it refused", err)
	}
}

func TestLedgerOfATreeThatIsGone(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	away := t.TempDir() + "/away"
	l.git("worktree", "add", "-q", "--detach", away)
	broken := errors.New("broken disk")
	var tree string
	half := func(r *worktree.Repo, tree *worktree.Tree) {
		t.Helper()
		s := l.snapshot(tree)
		ch := l.change(r, s, "0.9", func(dir string) { l.write(dir, "a", "half\n"); l.write(dir, "b", "half\n") })
		if _, err := tree.Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch)); !errors.Is(err, worktree.ErrHalfApplied) {
			t.Errorf("Apply = %v, want it to stay half applied", err)
		}
	}
	options := worktree.Options{Session: "dead", Fault: func(at string) error {
		if at != "after replace a" {
			return nil
		}
		l.check(os.Rename(tree, tree+".gone")) // and so it cannot be rolled back
		l.check(os.WriteFile(tree, nil, 0o600))
		return broken
	}}
	r := l.openAt(away, options)
	child := l.copy(r, l.snapshot(r.Tree()), "0.1")
	tree = child.Root
	half(r, child.Tree())
	tree = away
	half(r, r.Tree())
	l.remove(child.Root, "")
	l.remove(away, "")
	_, _ = r.Close(soon(t))

	next := l.open(worktree.Options{Session: "next"})
	done, err := next.Recover(t.Context())
	var failed []worktree.Recovered
	for _, rec := range done {
		if rec.Name == "" {
			failed = append(failed, rec)
		}
	}
	if err != nil || len(failed) != 1 || failed[0].Action != worktree.Failed {
		t.Errorf("Recover = %+v, %v, want one ledger that cannot be rolled back now", done, err)
	}
	if done, err := next.Recover(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("Recover again = %+v, %v, want nothing to tell", done, err)
	}
	l.check(os.Rename(away+".gone", away))
	if done, err = next.Recover(t.Context()); err != nil || len(done) != 1 || done[0].Action != worktree.RolledBack {
		t.Errorf("Recover with the tree back = %+v, %v, want it rolled back", done, err)
	}
	same(t, "tree", l.files(away), map[string]string{"a": `false "a\n"`})
}

func TestOpenEndsThoughTheConfigurationIsAFIFO(t *testing.T) {
	l := newLab(t)
	l.fifo(l.root, ".git/config")
	_, err := worktree.OpenWithin(soon(t), l.root, worktree.Options{Cache: l.cache}, time.Second)
	if err == nil || !strings.Contains(err.Error(), "no answer after 1s") {
		t.Errorf("Open = %v, want it to say that there was no answer", err)
	}
}
