package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Policy says what a box may reach. There is no default: an empty Workspace is refused.
//
// A box shows, read-only and at their own paths, the host's system folders (a built-in list: /usr,
// /etc, /opt, some of /var …), toolchains that PATH, the variables of toolchains or a second
// list name, in homes and elsewhere, and what the policy names: nothing else of the host is
// there. Hidden in them are places of secrets, the sockets by path that exist when the box is
// opened, what only root may read in /etc, /usr/local/etc and /opt if commands are root, and
// Hidden.
type Policy struct {
	// Workspace is the host folder with the files.
	Workspace string
	// Layers, if not nil, shows the workspace as an overlay: Workspace is its lowest layer
	// and never written.
	Layers *Layers
	// View is the absolute path at which the workspace is shown, "" for its own. What
	// stood there before cannot be reached.
	View string
	// Writable says that the workspace may be changed.
	Writable bool
	// Scopes are the folders, relative to the workspace, that alone may then be changed;
	// none, for all of it. GitDir stays writable.
	Scopes []string
	// GitDir is a git directory of the host, shown at View/.git and writable iff Writable
	// is set; the workspace is then a copy of the user's tree, whose settings may be changed.
	// Other git directories, at .git of the workspace or anywhere below, are never writable.
	GitDir string
	// ReadOnly lists what else must be visible, such as object stores.
	ReadOnly []Mount
	// Readable lists files and folders of the host that are shown besides, at their own paths.
	// Neither what holds homes nor a place of secrets can be: Open refuses them. What no box
	// shows stays hidden in them.
	Readable []string
	// Hidden lists paths hidden besides the built-in ones, in any order; relative ones are
	// below the workspace. What does not exist is ignored. What the policy shows by name is
	// shown even below a hidden folder.
	Hidden []string
	// Tmp is a private host folder shown as /tmp, writable; "" for one in memory. Guests have
	// one of their own in any case.
	Tmp string
	// Env is the environment of commands, whole; see [Environment]. HOME in it says where
	// the user's secrets and caches are; commands get a private HOME and TMPDIR.
	Env []string
	// Git is the user.name and user.email of commits made inside; "" leaves one unset.
	Git [2]string
	// Net gives commands the network of the host, with all that listens on its loopback
	// device; without it there is a loopback device of the box's own and nothing else. Abstract
	// sockets of the host stay closed: where the kernel cannot hold that, no box opens.
	Net bool
	// Limits bound what commands use. The zero value has sensible ones.
	Limits Limits
	// Init is the program that serves as init: "" for skein-init beside this program's
	// file if there is one, else this program, which must then call [Main] when [IsInit].
	Init string
}

// A Mount shows a host path in a box, read-only.
type Mount struct {
	Host string
	Path string // where it is shown: a path that exists on the host; "" = Host
}

// A policyError is a policy that contradicts itself or the host.
type policyError struct {
	cause error
	hint  string
}

func (e *policyError) Error() string { return "open box: " + e.cause.Error() }
func (e *policyError) Unwrap() error { return e.cause }
func (e *policyError) Hint() string  { return e.hint }

// checked returns the policy with its paths absolute and free of symbolic links.
func (p Policy) checked() (Policy, error) {
	if p.Workspace == "" {
		return p, &policyError{errors.New("the policy names no workspace"), "this is a fault of the program that opens the box"}
	}
	work, err := resolve(p.Workspace)
	if err != nil {
		return p, &policyError{fmt.Errorf("workspace: %w", err), "name a folder that exists"}
	}
	if info, err := os.Stat(work); err != nil || !info.IsDir() {
		return p, &policyError{fmt.Errorf("workspace %s is not a folder", work), "name a folder"}
	}
	if err := p.checkPlace(work); err != nil {
		return p, err
	}
	if p.View == "" {
		if p.View, err = filepath.Abs(p.Workspace); err != nil {
			return p, &policyError{fmt.Errorf("workspace: %w", err), "name an absolute path"}
		}
	}
	if !filepath.IsAbs(p.View) {
		return p, &policyError{fmt.Errorf("view %s is relative", p.View), "name an absolute path"}
	}
	p.Workspace, p.View = work, filepath.Clean(p.View)
	if p.Layers != nil {
		if p.Layers, err = p.Layers.checked(); err != nil {
			return p, err
		}
	}
	if err := p.Limits.Check(); err != nil {
		return p, err
	}
	if p.Readable, err = CheckReadable(p.Readable, p.Env); err != nil {
		return p, err
	}
	p.Scopes, err = p.checkScopes()
	return p, err
}

// checkPlace refuses a workspace in a place of secrets, or of the harness.
func (p Policy) checkPlace(work string) error {
	for _, home := range homesOf(p.Env) {
		for _, name := range secretsOfHome {
			if place := filepath.Join(home, name); within(work, place) {
				return &policyError{fmt.Errorf("workspace %s: nothing in %s is shown to commands", work, place), "work in a folder of a project"}
			}
		}
	}
	if p.Writable && slices.Contains(strings.Split(filepath.ToSlash(work), "/"), ".skein") {
		return &policyError{fmt.Errorf("workspace %s lies in .skein, where nothing is ever writable", work), "work in a folder of a project"}
	}
	return nil
}

// checkScopes returns the scopes without those that lie in others.
func (p Policy) checkScopes() (scopes []string, err error) {
	named := slices.Clone(p.Scopes)
	for i, scope := range named {
		named[i] = filepath.Clean(scope)
		if err := p.checkScope(named[i]); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 || slices.Contains(named, ".") {
		return []string{"."}, nil
	}
	slices.Sort(named) // what holds others comes before them
	for _, scope := range named {
		if !inScopes(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// inScopes reports whether a path below the workspace lies in a scope. All are clean.
func inScopes(scopes []string, rel string) bool {
	return slices.ContainsFunc(scopes, func(scope string) bool { return scope == "." || within(rel, scope) })
}

// checkScope refuses a scope that is, or once was, somewhere else than its name says.
func (p Policy) checkScope(scope string) error {
	for e := range strings.SplitSeq(filepath.ToSlash(scope), "/") {
		if slices.Contains(closed, e) {
			return &policyError{fmt.Errorf("scope %s lies in %s, where nothing is ever writable", scope, e), "name another folder"}
		}
	}
	if !filepath.IsLocal(scope) {
		return &policyError{fmt.Errorf("scope %s leaves the workspace", scope), "name a folder below the workspace"}
	}
	if p.Layers != nil {
		return nil // what it is in all layers together shows when the box is built
	}
	named := filepath.Join(p.Workspace, scope)
	found, err := resolve(named)
	if err != nil {
		return &policyError{fmt.Errorf("scope %s: %w", scope, cause(err)), "name a folder that exists"}
	}
	if info, err := os.Stat(found); err != nil || !info.IsDir() || found != named {
		return &policyError{fmt.Errorf("scope %s is not a folder, or lies behind a symbolic link", scope), "name the folder itself"}
	}
	return nil
}

// resolve makes a path absolute and free of symbolic links.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// actual makes an absolute path free of symbolic links as far as it exists.
func actual(path string) string {
	path = filepath.Clean(path)
	if found, err := filepath.EvalSymlinks(path); err == nil || filepath.Dir(path) == path {
		return cmp.Or(found, path)
	}
	return filepath.Join(actual(filepath.Dir(path)), filepath.Base(path))
}

// below returns the name in the workspace of a path that is relative, or that lies below
// the workspace or its view, by whatever links it was named. The policy is a checked one.
func (p Policy) below(path string) (rel string, ok bool) {
	if !filepath.IsAbs(path) {
		return filepath.Clean(path), filepath.IsLocal(path)
	}
	for _, path := range []string{filepath.Clean(path), actual(path)} {
		for _, root := range []string{p.View, actual(p.View), p.Workspace} {
			if rel, ok := strings.CutPrefix(path, root+"/"); ok {
				return rel, true
			}
		}
	}
	return "", false
}

// within reports whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}
