package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"skein/sandbox/boxinit"
)

// A plan is a policy worked out for this host.
type plan struct {
	spec boxinit.Spec
	view string
	env  []string
	out  outlook
	gone []string // hidden, by the policy and the built-in list
	guard
	output int64 // most bytes that a command prints; 0 = no limit
}

// planFor works out how to build the box of a checked policy.
func planFor(p Policy) (plan, error) {
	closed := make(chan []string, 1)
	go func() { // waited for just below
		var found []string
		if os.Geteuid() == 0 {
			found = onlyRoots(rootsTrees, nil, mostOfSystem)
		}
		closed <- found
	}()
	pl, err := draft(p)
	found := <-closed
	if err == nil {
		pl.finish(found)
	}
	return pl, err
}

// draft is a plan that does not know yet what is closed to all but root.
func draft(p Policy) (plan, error) {
	var none plan
	view, err := viewOf(p)
	if err != nil {
		return none, err
	}
	machine := machineMemory()
	most := p.Limits.settled(machine)
	room := roomIn(most.Memory, machine)
	spec := boxinit.Spec{View: view, Mounts: system(room), Links: links(), Memory: room.layers, Own: room.own()}
	if spec.UID, spec.GID, spec.Switch, err = identity(p.owned()); err != nil {
		return none, err
	}
	if spec.Filter, err = filter(runtime.GOARCH); err != nil {
		return none, &noBox{err}
	}
	spec.Limits = boxinit.Limits{Memory: most.Memory, Disk: most.Disk, FileSize: most.FileSize, Processes: most.Processes}
	add := func(m boxinit.Mount) { spec.Mounts = append(spec.Mounts, m) }

	workspace(p, view, add)
	if err := gitMount(p, view, add); err != nil {
		return none, err
	}
	if err := readOnly(p, view, add); err != nil {
		return none, err
	}
	if err := scratch(p, room, add); err != nil {
		return none, err
	}
	if spec.Net = p.Net; p.Net {
		resolvConf("/etc/resolv.conf", add)
	}
	never := secrets(p.Env)
	caches := cached(p, never, room, add)
	gone, err := hide(p, view, never, &spec)
	if err != nil {
		return none, err
	}
	// First: what is hidden or shown by name stands on top of them.
	out := outlookOf(p, view)
	spec.Mounts, spec.Links = append(out.mounts, spec.Mounts...), append(spec.Links, out.links...)
	guard, err := guardFor(p, view, &spec)
	if err != nil {
		return none, err
	}
	anchor(p, view, &spec) // last: what is closed is fixed, and stays closed
	spec.Files = []boxinit.File{{Path: boxinit.Home + "/.gitconfig", Text: gitConfig(p.Git)}}
	return plan{spec: spec, view: view, env: environment(p, caches), out: out, gone: gone, guard: guard, output: most.Output}, nil
}

// finish adds what only root may read, where commands are root, and puts the mounts in order.
func (pl *plan) finish(closed []string) {
	if pl.spec.UID != 0 {
		closed = nil
	}
	for _, path := range besides(closed, pl.out.told) {
		if at := nearest(pl.spec.Mounts, path); at >= 0 && slices.Contains(pl.out.shown, pl.spec.Mounts[at].Target) {
			pl.spec.Mounts = append(pl.spec.Mounts, boxinit.Mount{Kind: boxinit.Hide, Target: path})
			pl.gone = append(pl.gone, path)
		}
	}
	pl.out.veil(&pl.spec, pl.gone)
	all := slices.Clone(pl.spec.Mounts)
	pl.spec.Mounts = slices.DeleteFunc(pl.spec.Mounts, func(m boxinit.Mount) bool {
		return m.Kind == boxinit.Hide && !ofHost(all, m.Target)
	})
	slices.SortStableFunc(pl.spec.Mounts, func(a, b boxinit.Mount) int { return cmp.Compare(a.Target+"/", b.Target+"/") })
}

// ofHost reports whether a path lies in something of the host that a box shows. Elsewhere nothing
// is there to be hidden.
func ofHost(mounts []boxinit.Mount, path string) bool {
	return slices.ContainsFunc(mounts, func(m boxinit.Mount) bool {
		return m.Kind != boxinit.Hide && m.Kind != boxinit.Tmpfs && within(path, m.Target)
	})
}

// workspace shows the files.
func workspace(p Policy, view string, add func(boxinit.Mount)) {
	m := boxinit.Mount{Kind: boxinit.Bind, Source: p.Workspace, Target: view, Writable: p.Writable}
	if l := p.Layers; l != nil {
		m.Kind, m.Scopes, m.Above = boxinit.Layers, p.Scopes, l.Above
		switch {
		case p.Writable:
			m.Upper, m.Work = l.Upper, l.Work
		case l.Upper != "":
			m.Above = append([]string{l.Upper}, m.Above...)
		}
		add(m)
		return
	}
	whole := inScopes(p.Scopes, ".")
	m.Writable = p.Writable && whole
	add(m)
	for _, scope := range p.Scopes {
		if p.Writable && !whole {
			m.Writable, m.Source, m.Target = true, filepath.Join(p.Workspace, scope), filepath.Join(view, scope)
			add(m)
		}
	}
}

// machineMemory is in bytes; 0 is unknown.
func machineMemory() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit))
}

// viewOf is where the workspace is shown: a path that exists, or one below the box's own
// folders, free of symbolic links.
func viewOf(p Policy) (string, error) {
	view, err := filepath.EvalSymlinks(p.View)
	if err != nil {
		view = p.View
		if !within(view, "/tmp") && !within(view, "/run") {
			return "", &policyError{fmt.Errorf("view: %w", err), "show the workspace at a folder that exists"}
		}
	}
	for _, own := range []string{"/", "/tmp", "/run", "/proc", "/dev", "/sys"} {
		if within(own, view) || own != "/" && own != "/tmp" && own != "/run" && within(view, own) {
			return "", &policyError{fmt.Errorf("view %s: the box needs %s itself", view, own), "work in a folder of your own"}
		}
	}
	return view, nil
}

// A room is what a box may write in memory: each place has its bound, in the kernel's words,
// so that filling one does not end the machine.
type room struct {
	scratch string // each of /tmp, HOME and /dev/shm
	layers  string // build caches and throw-away layers together, which grow with what is built
}

// roomIn is the room of a box whose commands may have so much memory, bytes; 0 = no limit. One
// that the machine (0 = unknown) has not is none.
func roomIn(memory, machine int64) room {
	if memory == 0 || machine > 0 && memory > machine {
		return room{scratch: "1g", layers: "25%"}
	}
	return room{scratch: fmt.Sprint(min(1<<30, memory/4)), layers: fmt.Sprint(memory / 2)}
}

// own is what each guest has of its own.
func (r room) own() (list []boxinit.Mount) {
	for _, place := range []string{"/tmp", "/dev/shm"} {
		list = append(list, boxinit.Mount{Kind: boxinit.Tmpfs, Target: place, Writable: true, Mode: 0o1777, Size: r.scratch})
	}
	return append(list, r.home())
}

// home is one of the box, or of a guest. No cache lies in it: nothing there has to be warm.
func (r room) home() boxinit.Mount {
	return boxinit.Mount{Kind: boxinit.Tmpfs, Target: boxinit.Home, Writable: true, Mode: 0o700, Mine: true, Size: r.scratch}
}

// system is what every box has of its own.
func system(r room) []boxinit.Mount {
	mounts := []boxinit.Mount{
		{Kind: boxinit.Tmpfs, Target: "/dev"},
		{Kind: boxinit.Pts, Target: "/dev/pts"},
		{Kind: boxinit.Tmpfs, Target: "/dev/shm", Writable: true, Mode: 0o1777, Size: r.scratch},
		{Kind: boxinit.Proc, Target: "/proc"},
		{Kind: boxinit.Tmpfs, Target: "/run"}, // sockets of every kind of daemon
		r.home(),
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		path := "/dev/" + name
		mounts = append(mounts, boxinit.Mount{Kind: boxinit.Device, Source: path, Target: path})
	}
	return mounts
}

func links() []boxinit.Link {
	return []boxinit.Link{
		{Path: "/dev/fd", Target: "/proc/self/fd"},
		{Path: "/dev/stdin", Target: "/proc/self/fd/0"},
		{Path: "/dev/stdout", Target: "/proc/self/fd/1"},
		{Path: "/dev/stderr", Target: "/proc/self/fd/2"},
		{Path: "/dev/ptmx", Target: "pts/ptmx"},
	}
}

// owned is the folder whose owner commands run as.
func (p Policy) owned() string {
	if p.Layers != nil && p.Layers.Upper != "" {
		return p.Layers.Upper
	}
	return p.Workspace
}

// identity is whom commands run as: us, or the workspace's owner when we are root, so
// that root's files stay closed to them.
func identity(workspace string) (uid, gid int, other bool, err error) {
	uid, gid = os.Geteuid(), os.Getegid()
	if uid != 0 {
		return uid, gid, false, nil
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(workspace, &stat); err != nil {
		return 0, 0, false, &policyError{fmt.Errorf("workspace %s: %w", workspace, err), "name a folder that exists"}
	}
	if stat.Uid == 0 {
		return uid, gid, false, nil
	}
	return int(stat.Uid), int(stat.Gid), true, nil
}

// gitMount shows a git directory of the workspace's own. The user's is closed to commands,
// see [guard]: hooks and configuration in it are run outside of any box.
func gitMount(p Policy, view string, add func(boxinit.Mount)) error {
	if p.GitDir == "" {
		return nil
	}
	source, err := resolve(p.GitDir)
	if err != nil {
		return &policyError{fmt.Errorf("git directory: %w", err), "name a git directory that exists"}
	}
	add(boxinit.Mount{Kind: boxinit.Bind, Source: source, Target: filepath.Join(view, ".git"), Writable: p.Writable})
	return nil
}

// fixed reports whether path exists, and refuses a symbolic link: a command could put
// something else in its place, whatever is mounted over the link's target.
func fixed(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	case err != nil:
		return false, &policyError{err, "make it readable"}
	case info.Mode()&fs.ModeSymlink != 0:
		return false, &policyError{fmt.Errorf("%s is a symbolic link, which a box cannot protect", path), "replace the link, or work read-only"}
	}
	return true, nil
}

func readOnly(p Policy, view string, add func(boxinit.Mount)) error {
	for _, m := range p.ReadOnly {
		source, err := resolve(m.Host)
		if err != nil {
			return &policyError{fmt.Errorf("read-only path: %w", err), "name a path that exists"}
		}
		target := filepath.Clean(m.Path)
		if m.Path == "" {
			target = source
		}
		if !filepath.IsAbs(target) || within(view, target) {
			return &policyError{fmt.Errorf("read-only path %s would cover the workspace", target), "show it somewhere else"}
		}
		if resolved, err := filepath.EvalSymlinks(target); err == nil && !within(target, view) {
			target = resolved
		}
		add(boxinit.Mount{Kind: boxinit.Bind, Source: source, Target: target})
	}
	return nil
}

// scratch is what commands may write besides the workspace.
func scratch(p Policy, r room, add func(boxinit.Mount)) error {
	if p.Tmp == "" {
		add(boxinit.Mount{Kind: boxinit.Tmpfs, Target: "/tmp", Writable: true, Mode: 0o1777, Size: r.scratch})
	} else {
		source, err := resolve(p.Tmp)
		if err != nil {
			return &policyError{fmt.Errorf("tmp: %w", err), "name a folder that exists"}
		}
		add(boxinit.Mount{Kind: boxinit.Bind, Source: source, Target: "/tmp", Writable: true, Mine: true})
	}
	return nil
}

// hide adds what must not be seen. What the policy shows by name is shown even where the
// built-in list hides what is around it. The list is of what is hidden besides sockets.
func hide(p Policy, view string, secrets []string, spec *boxinit.Spec) (gone []string, err error) {
	shown := map[string]bool{}
	for _, m := range spec.Mounts {
		shown[m.Target] = true
	}
	hidden := map[string]bool{}
	add := func(path string) {
		if !hidden[path] {
			spec.Mounts = append(spec.Mounts, boxinit.Mount{Kind: boxinit.Hide, Target: path})
		}
		hidden[path] = true
	}
	for _, path := range secrets {
		if !shown[path] && path != "/" {
			add(path)
			gone = append(gone, path)
		}
	}
	found, err := sockets(socketTable, p, view)
	if err != nil {
		return nil, &noBox{err}
	}
	for _, path := range found {
		if !shown[path] {
			add(path)
		}
	}
	for _, path := range p.Hidden {
		targets := []string{actual(path)}
		if rel, ok := p.below(path); ok {
			host := filepath.Join(p.Workspace, rel)
			if _, err := fixed(host); err != nil && p.Writable && p.Layers == nil {
				return nil, err
			}
			if targets = []string{filepath.Join(view, rel)}; !within(host, view) {
				targets = append(targets, host) // the same file where the host has it
			}
		} else if !filepath.IsAbs(path) {
			return nil, &policyError{fmt.Errorf("hidden path %s leaves the workspace", path), "name it by its absolute path"}
		}
		for _, target := range targets {
			if target == "/" || target == view || shown[target] && !within(target, view) {
				return nil, &policyError{fmt.Errorf("hidden path %s covers what the box needs", path), "hide less"}
			}
			add(target)
			gone = append(gone, target)
		}
	}
	return gone, nil
}

// anchor keeps the folders of a writable workspace in which something is hidden where they are:
// by another name of its folder the next box would show it. Where something is mounted nothing
// can be moved.
func anchor(p Policy, view string, spec *boxinit.Spec) {
	if !p.Writable || p.Layers != nil {
		return // a copy is thrown away
	}
	done := map[string]bool{view: true}
	for _, m := range spec.Mounts {
		done[m.Target] = true
	}
	for _, m := range spec.Mounts {
		for dir := filepath.Dir(m.Target); m.Kind == boxinit.Hide && within(dir, view) && !done[dir]; dir = filepath.Dir(dir) {
			done[dir] = true
			rel, err := filepath.Rel(view, dir)
			host := filepath.Join(p.Workspace, rel)
			if info, lost := os.Lstat(host); err != nil || lost != nil || !info.IsDir() || !inScopes(p.Scopes, rel) {
				continue
			}
			if at := nearest(spec.Mounts, dir); at >= 0 && !spec.Mounts[at].Writable {
				continue // it lies in what is closed
			}
			spec.Mounts = append(spec.Mounts, boxinit.Mount{Kind: boxinit.Bind, Source: host, Target: dir, Writable: true})
		}
	}
}

// environment is what commands see: the policy's, where caches are, and what the box itself
// decides.
func environment(p Policy, caches []string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	home := lookup(p.Env, "HOME")
	for _, t := range []struct{ variable, folder string }{
		{"GOMODCACHE", modules(p.Env)},
		{"RUSTUP_HOME", filepath.Join(home, ".rustup")},
		{"PYENV_ROOT", filepath.Join(home, ".pyenv")},
		{"NVM_DIR", filepath.Join(home, ".nvm")},
	} {
		// HOME differs inside, so what would be found by it has to be named.
		if info, err := os.Stat(t.folder); filepath.IsAbs(t.folder) && err == nil && info.IsDir() {
			env = append(env, t.variable+"="+t.folder)
		}
	}
	own := []string{"HOME=" + boxinit.Home, "TMPDIR=/tmp", "XDG_CACHE_HOME=" + boxinit.Home + "/.cache"}
	return override(env, withoutCaches(p.Env), caches, own)
}

// modules is the folder the go command would use, see "go help environment".
func modules(env []string) string {
	if dir := lookup(env, "GOMODCACHE"); dir != "" {
		return dir
	}
	if list := filepath.SplitList(lookup(env, "GOPATH")); len(list) > 0 {
		return filepath.Join(list[0], "pkg", "mod")
	}
	return filepath.Join(lookup(env, "HOME"), "go", "pkg", "mod")
}

// gitConfig is the user's configuration in the box. All repositories are trusted: whatever
// they configure runs in the box.
func gitConfig(git [2]string) string {
	text := "[safe]\n\tdirectory = *\n"
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\x00", "")
	for i, key := range []string{"name", "email"} {
		if git[i] != "" {
			text += fmt.Sprintf("[user]\n\t%s = \"%s\"\n", key, quote.Replace(git[i]))
		}
	}
	return text
}
