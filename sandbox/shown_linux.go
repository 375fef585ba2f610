package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"skein/sandbox/boxinit"
)

// systemPaths are shown of the host, as far as they are there: what programs of the system
// need, on the distributions that there are. Whatever else is on the host is not in a box,
// save what the policy, PATH and the variables of toolchains name. The first is shown by itself
// for the sake of its veil: one over all of /usr would cost each program that is started.
var systemPaths = []string{
	"/usr/local/etc", "/usr", "/usr/local", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap", "/sys",
	// Of /var what package managers, certificates, typesetting and languages keep there.
	"/var/lib/alternatives", "/var/lib/apk", "/var/lib/apt/lists", "/var/lib/aspell", "/var/lib/ca-certificates", "/var/lib/ca-certificates-java",
	"/var/lib/dictionaries-common", "/var/lib/dpkg", "/var/lib/emacsen-common", "/var/lib/flatpak/runtime", "/var/lib/fontconfig", "/var/lib/gems",
	"/var/lib/ghc", "/var/lib/ispell", "/var/lib/locales", "/var/lib/pacman", "/var/lib/rpm", "/var/lib/sgml-base", "/var/lib/snapd/snap",
	"/var/lib/tex-common", "/var/lib/texmf", "/var/lib/xml-core", "/var/cache/fontconfig", "/var/cache/fonts", "/var/cache/man",
}

// systemLinks are what programs expect of a system besides, where it has them as links.
var systemLinks = []string{"/var/run", "/var/lock"}

// gathering are folders in which everything may lie: a variable that names one does not mean all
// of it.
var gathering = []string{"/", "/data", "/etc", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/usr", "/var", "/var/lib"}

// An outlook is what a box shows of the host besides what its policy shows by name.
type outlook struct {
	view   string
	homes  []string
	hidden []string // by the policy: nothing of it is shown
	named  []string // where the policy shows something by name: that, and nothing of the host besides
	covers []string // folders of what is shown that are empty
	shown  []string
	live   []string // of these, what is to be seen as it changes
	told   []string // what is shown by name, or would be if it were not already
	mounts []boxinit.Mount
	links  []boxinit.Link
}

// outlookOf finds out what there is on this host to be shown.
func outlookOf(p Policy, view string) outlook {
	o := outlook{view: view, homes: homesOf(p.Env), named: readOnlyPlaces(p)}
	for _, path := range p.Hidden {
		if filepath.IsAbs(path) {
			o.hidden = append(o.hidden, actual(path))
		}
	}
	anything := func(string) bool { return true }
	for _, path := range systemPaths {
		o.show(path, anything)
	}
	o.told = []string{view} // the system's folders are no such thing
	o.systemLinks()
	wanted := tools(p)
	o.cover(p, wanted)
	for _, path := range wanted {
		o.show(path, o.narrow)
	}
	for i := range o.mounts {
		o.mounts[i].Optional = true // nobody asked for any of it by name
	}
	o.live = gitDirs(p)
	for _, path := range o.live {
		o.show(path, o.aboveNoHome)
	}
	for _, path := range p.Readable {
		o.show(path, anything)
	}
	// Whatever the names by which the user knows these.
	for _, path := range append(userHomes(p.Env), p.View) {
		if filepath.IsAbs(path) {
			_, links, _ := trail(path) // as far as it exists
			o.link(links)
		}
	}
	return o
}

// show shows a path of the host, and the links by which it is named, if the file itself may be.
func (o *outlook) show(path string, may func(found string) bool) {
	if _, err := os.Lstat(path); err != nil {
		return // as most of them: one look is less than one at each folder on the way
	}
	found, links, err := trail(path)
	if err != nil || !o.visible(found) && !may(found) || slices.ContainsFunc(o.hidden, func(h string) bool { return within(found, h) }) {
		return
	}
	o.link(links)
	o.told = append(o.told, found)
	if o.visible(found) || slices.ContainsFunc([]string{"/dev", "/proc"}, func(own string) bool { return within(found, own) }) {
		return
	}
	o.shown = append(o.shown, found)
	o.mounts = append(o.mounts, boxinit.Mount{Kind: boxinit.Bind, Source: found, Target: found})
}

// link adds links where nothing is shown that has them already.
func (o *outlook) link(links []boxinit.Link) {
	for _, l := range links {
		path := l.Path
		if !o.visible(path) && !slices.Contains(o.links, l) && !slices.ContainsFunc(o.hidden, func(h string) bool { return within(path, h) }) {
			o.links = append(o.links, l)
		}
	}
}

// visible reports whether a path is shown already.
func (o *outlook) visible(path string) bool {
	if within(path, o.view) || slices.ContainsFunc(o.named, func(n string) bool { return within(path, n) }) {
		return true
	}
	nearest, shown := "", false
	for _, s := range o.shown {
		if within(path, s) && len(s) > len(nearest) {
			nearest, shown = s, true
		}
	}
	for _, c := range o.covers {
		if within(path, c) && len(c) > len(nearest) {
			nearest, shown = c, false
		}
	}
	return shown
}

// narrow reports whether a folder, which something in the environment names, holds tools
// rather than everything.
func (o *outlook) narrow(found string) bool {
	own := slices.ContainsFunc(ofBox, func(own string) bool { return within(found, own) })
	return !own && !slices.Contains(gathering, found) && !within(o.view, found) && o.aboveNoHome(found)
}

// aboveNoHome reports whether a folder neither is nor holds a home.
func (o *outlook) aboveNoHome(found string) bool {
	return !within("/home", found) && !slices.ContainsFunc(o.homes, func(home string) bool { return within(home, found) })
}

// systemLinks gives the box the links in the root of the host, and temporary files that are
// kept elsewhere a place in its own.
func (o *outlook) systemLinks() {
	entries, err := os.ReadDir("/")
	if err != nil {
		return // whoever may not look there is told of nothing
	}
	paths := systemLinks
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			paths = append(paths[:len(paths):len(paths)], "/"+e.Name())
		}
	}
	for _, path := range paths {
		if target, err := os.Readlink(path); err == nil {
			o.link([]boxinit.Link{{Path: path, Target: target}})
		}
	}
	o.link([]boxinit.Link{{Path: "/var/tmp", Target: "/tmp"}})
}

// cover hides homes and other projects that lie in what is shown of the system.
func (o *outlook) cover(p Policy, wanted []string) {
	add := func(dir string) {
		info, err := os.Lstat(dir)
		named := func(path string) bool { return within(dir, path) }
		if err != nil || !info.IsDir() || !o.visible(dir) || within(dir, o.view) || slices.ContainsFunc(shownByName(p), named) {
			return
		}
		o.covers = append(o.covers, dir)
		o.mounts = append(o.mounts, boxinit.Mount{Kind: boxinit.Tmpfs, Target: dir})
	}
	for _, home := range o.homes {
		// Those of the system's own users, such as /usr/sbin, are folders of the system.
		ofSystem := slices.ContainsFunc(systemPaths, func(path string) bool { return within(path, home) })
		if dir := filepath.Dir(home); dir != "/" && dir != "/usr" && !ofSystem {
			add(home)
		}
	}
	for _, dir := range []string{"/usr/src", "/usr/local/src", "/usr/home"} {
		if within(o.view, dir) {
			add(dir)
		}
	}
	rest, ok := strings.CutPrefix(o.view, "/opt/")
	if !ok {
		return
	}
	if name, _, deep := strings.Cut(rest, "/"); deep {
		add("/opt/" + name)
		return
	}
	entries, err := os.ReadDir("/opt")
	if err != nil {
		return
	}
	for _, e := range entries { // programs are installed there, too
		dir := "/opt/" + e.Name()
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		if err == nil && !slices.ContainsFunc(wanted, func(path string) bool { return within(path, dir) }) {
			add(dir)
		}
	}
}

// readOnlyPlaces lists where the policy shows folders of its choice.
func readOnlyPlaces(p Policy) (list []string) {
	for _, m := range p.ReadOnly {
		at := m.Path
		if at == "" {
			at = m.Host
		}
		list = append(list, actual(at))
	}
	return list
}

// shownByName lists where the policy shows something by name.
func shownByName(p Policy) (list []string) {
	list = readOnlyPlaces(p)
	for _, path := range p.Readable {
		list = append(list, actual(path))
	}
	return list
}

// trail follows an absolute path to the file itself, and returns the symbolic links on the way.
func trail(path string) (found string, links []boxinit.Link, err error) {
	found = "/"
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(found, name) // which has no link in it, so that .. is what it seems
		info, err := os.Lstat(next)
		if err != nil {
			return "", links, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			found = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", links, err
		}
		if links = append(links, boxinit.Link{Path: next, Target: target}); len(links) > maxLinks {
			return "", nil, syscall.ELOOP
		}
		if filepath.IsAbs(target) {
			found = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return found, links, nil
}
