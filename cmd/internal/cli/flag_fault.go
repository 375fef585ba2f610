package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagFault tells of a flag that was given wrongly: what it takes, and which help has it.
func flagFault(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return usage(c, fmt.Sprintf("--%s %q: %s", f.Name, invalid.GetValue(), wanted(f, invalid.Unwrap())), flagHint(c, f))
	case errors.As(err, &missing):
		return usage(c, err.Error(), flagHint(c, missing.GetFlag()))
	}
	return usage(c, err.Error(), "see "+c.CommandPath()+" --help")
}

// wanted says what a flag takes, by the error that its value gave.
func wanted(f *pflag.Flag, err error) string {
	if errors.Is(err, strconv.ErrRange) {
		return "too large a number"
	}
	switch f.Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "float64":
		return "want a number"
	case "duration":
		return "want a time with its unit, such as 30s or 15m"
	case "bool":
		return "want true or false"
	}
	return err.Error()
}

// flagHint gives an example of a flag, or where it has none of its own the help that lists it.
func flagHint(c *cobra.Command, f *pflag.Flag) string {
	if t := f.Value.Type(); (t == "int" || t == "int64") && f.DefValue != "0" {
		return "as in --" + f.Name + " " + f.DefValue
	}
	if t := f.Annotations[topicOf]; len(t) == 1 {
		return "see skein help " + t[0]
	}
	return "see " + c.CommandPath() + " --help"
}
