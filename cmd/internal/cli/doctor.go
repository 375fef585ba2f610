package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skein/cmd/internal/doctor"
	"skein/cmd/internal/face"
	"skein/cmd/internal/provider"
	"skein/tools/mask"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine has of what a run needs, by trying it",
		Long: `Say what this machine has of what a run needs: git, a box and what it holds, a model, configuration.
It is tried, in a box of its own; nothing is changed. Exit code 0 if all is there, 1 without git or a box.`,
		Example: `  skein doctor
  skein doctor --json
  skein sandbox -- skein doctor      # in a box there is no other box`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runDoctor(c, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the same as JSON")
	return c
}

func runDoctor(c *cobra.Command, asJSON bool) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("doctor: find the current folder: %w", err)
	}
	r := doctor.Report{Good: true}
	r.Add("skein", "version", doctor.Good, version(debug.ReadBuildInfo()))
	r.Look(c.Context(), dir)
	addModel(c, dir, &r)
	if err := c.Context().Err(); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	hide := mask.New(provider.Secrets(dir, os.Environ()))
	for i := range r.Checks {
		r.Checks[i].Detail = face.Line(string(hide.Written([]byte(r.Checks[i].Detail))), 300)
	}
	out := c.OutOrStdout()
	if asJSON {
		err = writeJSON(out, r)
	} else {
		err = r.Write(out, colourful(os.Stdout))
	}
	switch {
	case err != nil:
		return fmt.Errorf("doctor: print the report: %w", err)
	case !r.Good:
		return &doctorError{r.Hint()}
	}
	return nil
}

// A doctorError says that something is missing, after it was shown what.
type doctorError struct{ hint string }

func (e *doctorError) Error() string { return "doctor: not all that a run needs is here" }

// Hint says what to do about it.
func (e *doctorError) Hint() string { return e.hint }

// addModel adds which model a run would use, and the files that say so.
func addModel(c *cobra.Command, dir string, r *doctor.Report) {
	found, ring, err := modelOptions{}.find(c, dir, &notes{out: io.Discard})
	fault := (*usageError)(nil)
	switch {
	case found == nil:
		if errors.As(err, &fault) {
			err = &usageError{text: fault.text, hint: fault.hint}
		}
		r.Fail("files", "configuration", err)
		return
	case errors.As(err, &fault):
		r.Add("model", "none", doctor.Note, fault.text+": "+fault.hint)
	case err != nil:
		r.Add("model", "none", doctor.Note, err.Error())
	default:
		r.Add("model", found.choice.Model, doctor.Good, "chosen by "+found.choice.Why+"; skein model check tries it")
	}
	path := found.config.Path
	_, err = os.Stat(path)
	switch {
	case path == "":
		r.Add("files", "configuration", doctor.Note, "no folder for one: neither HOME nor XDG_CONFIG_HOME is set")
	case errors.Is(err, fs.ErrNotExist):
		r.Add("files", "configuration", doctor.Note, path+" is not there; it need not be")
	default:
		r.Add("files", "configuration", doctor.Good, path+" was read")
	}
	if ring.Notice != "" {
		r.Add("files", ".env", doctor.Note, ring.Notice)
	}
}

// colourful reports whether colours may be shown on a file.
func colourful(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
