package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of skein, of Go, and the commit it was built from",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), version(debug.ReadBuildInfo()))
			return err
		},
	}
}

// version tells what the build recorded; what it did not is left out.
func version(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "skein, of an unknown build"
	}
	text := "skein " + info.Main.Version + " " + info.GoVersion
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	if commit := setting["vcs.revision"]; commit != "" {
		text += " commit " + commit
		if setting["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	return text
}
