package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// switches are the settings by which systems refuse user namespaces, each with the value
// that does. In a box the first is set.
var switches = []struct{ name, closed string }{
	{"user.max_user_namespaces", "0"},
	{"kernel.unprivileged_userns_clone", "0"},
	{"kernel.apparmor_restrict_unprivileged_userns", "1"},
}

// refusedBy adds to what the system answered the setting that makes it, if there is one.
func refusedBy(cause error) error {
	if !refusesNamespaces(cause) {
		return cause
	}
	for _, s := range switches {
		text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
		if err == nil && strings.TrimSpace(string(text)) == s.closed {
			return fmt.Errorf("%w (%s is %s)", cause, s.name, s.closed)
		}
	}
	return cause
}

// answer is what a report says of a step that went wrong.
func answer(err error) string {
	var none *noBox
	if !errors.As(err, &none) {
		return err.Error()
	}
	if fork := (*os.PathError)(nil); errors.As(none.cause, &fork) && refusesNamespaces(fork) {
		return "refused: " + strings.Replace(none.cause.Error(), fork.Error(), fork.Err.Error(), 1)
	}
	return none.cause.Error()
}
