package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/delegate"
)

// A choice is the value of a flag that takes one of a few words.
type choice struct {
	value *string
	words []string
}

var _ pflag.Value = choice{}

func (c choice) String() string {
	if c.value == nil { // pflag asks the zero value
		return ""
	}
	return *c.value
}

// Set takes one of the words.
func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want %s", strings.Join(c.words, ", "))
	}
	*c.value = s
	return nil
}

// Type is what help shows in place of the value.
func (c choice) Type() string { return strings.Join(c.words, "|") }

// choiceVar defines a flag that takes one of words.
func choiceVar(f *pflag.FlagSet, value *string, name, standard, text string, words ...string) {
	*value = standard
	f.Var(choice{value, words}, name, text)
}

// modeWords are the values of --delegate.
func modeWords() []string {
	var words []string
	for _, m := range delegate.Modes() {
		words = append(words, string(m))
	}
	return words
}

// modeOf is what --delegate and --single come to.
func modeOf(c *cobra.Command, words string, single bool) (delegate.Mode, error) {
	mode := delegate.Mode(words)
	switch {
	case !single:
		return mode, nil
	case c.Flags().Changed("delegate") && mode != delegate.Off:
		return "", usage(c, "both --single and --delegate "+words, "--single is the same as --delegate off: leave one of them away")
	}
	return delegate.Off, nil
}

// groupOf is the annotation that says under which title help lists a flag.
const groupOf = "skein-group"

// group defines flags that belong together under a title.
func group(c *cobra.Command, title string, define func(*pflag.FlagSet)) {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	define(f)
	f.VisitAll(func(flag *pflag.Flag) { _ = f.SetAnnotation(flag.Name, groupOf, []string{title}) }) // it exists
	c.Flags().AddFlagSet(f)
}

// groups returns the command's own flags by title, in the order they were defined.
func groups(c *cobra.Command) []*pflag.FlagSet {
	var sets []*pflag.FlagSet
	c.Flags().SortFlags = false
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" {
			return // everyone knows it
		}
		title := "Flags"
		if t := flag.Annotations[groupOf]; len(t) == 1 {
			title = t[0]
		}
		i := slices.IndexFunc(sets, func(s *pflag.FlagSet) bool { return s.Name() == title })
		if i < 0 {
			s := pflag.NewFlagSet(title, pflag.ContinueOnError)
			s.SortFlags = false
			sets, i = append(sets, s), len(sets)
		}
		sets[i].AddFlag(flag)
	})
	return sets
}
