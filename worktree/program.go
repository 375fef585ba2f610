package worktree

import "context"

// Git finds the git program that is used here and its version. The error says why none can
// be, and wraps [ErrUnavailable].
func Git(ctx context.Context) (path, version string, err error) {
	g, err := findGit(ctx, nil)
	if err != nil {
		return "", "", err
	}
	return g.program, g.version, nil
}
