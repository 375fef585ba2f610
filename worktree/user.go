package worktree

import (
	"context"
	"strings"
)

// User is the user.name and user.email that git would put into a commit made in a folder; ""
// for one that is not set, or where there is no git.
func User(ctx context.Context, dir string) (user [2]string) {
	g, err := findGit(ctx, nil)
	if err != nil {
		return user
	}
	for i, key := range []string{"user.name", "user.email"} {
		if value, err := g.line(ctx, place{dir: dir, user: true}, "config", "--get", key); err == nil {
			user[i] = strings.TrimSpace(value)
		}
	}
	return user
}
