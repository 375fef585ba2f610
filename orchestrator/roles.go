package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"skein/delegate"
	"skein/tools"
)

// rolesDir is where a project keeps its roles for subagents, a file each.
const rolesDir = ".agents/agents"

// Of roles so many are offered, and so many faults of theirs are told. Other files may lie in
// their folder.
const (
	mostRoles   = 50
	mostFaults  = 5
	mostEntries = 1000
)

// readRoles reads the roles of the workspace. The user is told once of what is wrong with
// them; what is not right is not offered.
func (r *run) readRoles(files tools.FS) []delegate.Role {
	names, err := roleNames(files)
	var faults []string
	if err != nil {
		faults = append(faults, rolesDir+": "+cause(err).Error())
	}
	known := ToolNames() // not only those that are offered in this run
	for _, t := range r.o.Own {
		known = append(known, t.Spec().Name)
	}
	var roles []delegate.Role
	for _, name := range names {
		file := path.Join(rolesDir, name+".md")
		role, err := readRole(files, name, file, known)
		if bad := (*delegate.RoleError)(nil); errors.As(err, &bad) && bad.Line > 0 {
			faults = append(faults, fmt.Sprintf("%s:%d: %s", tools.Show(file), bad.Line, bad.Text))
			continue
		} else if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", tools.Show(file), cause(err)))
			continue
		}
		if role.Model != "" && r.engine(role.Model) == nil {
			faults = append(faults, fmt.Sprintf("%s: offered without its model %s, which child_models of the configuration does not list", tools.Show(file), tools.Show(role.Model)))
			role.Model = ""
		}
		roles = append(roles, role)
	}
	if n := len(faults); n > mostFaults {
		faults = append(faults[:mostFaults], fmt.Sprintf("%d more", n-mostFaults))
	}
	if len(faults) > 0 {
		r.notice("roles of this project: "+strings.Join(faults, "; "), "a role is a file of front matter (description, access, tools, model) and text")
	}
	return roles
}

// roleNames lists the roles that there are files of, sorted.
func roleNames(files tools.FS) ([]string, error) {
	dir, err := files.Open(rolesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	list, ok := dir.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("it is no folder")
	}
	entries, err := list.ReadDir(mostEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > mostEntries {
		return nil, fmt.Errorf("it holds more than %d files", mostEntries)
	}
	var names []string
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), ".md"); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > mostRoles {
		return names[:mostRoles], fmt.Errorf("there are more than %d roles", mostRoles)
	}
	return names, nil
}

func readRole(files tools.FS, name, file string, tools []string) (delegate.Role, error) {
	if !delegate.RoleName.MatchString(name) {
		return delegate.Role{}, errors.New("a role is named by letters, digits, dots, dashes and underscores")
	}
	f, err := files.Open(file)
	if err != nil {
		return delegate.Role{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return delegate.Role{}, cmp.Or(err, errors.New("it is no file"))
	}
	text, err := io.ReadAll(io.LimitReader(f, delegate.RoleBytes+1))
	if err != nil {
		return delegate.Role{}, err
	}
	return delegate.ParseRole(name, text, tools)
}

// cause is an error without the path that the reader is told anyway.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// narrowed are the tools of an agent with a role among those of its parent; nil: all.
func narrowed(parents, role []string) []string {
	switch {
	case role == nil:
		return parents
	case parents == nil:
		return role
	}
	both := []string{}
	for _, name := range role {
		if slices.Contains(parents, name) {
			both = append(both, name)
		}
	}
	return both
}
