package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// A size is the value of a flag in bytes, such as 512m or 1.5g; 0 where it was not given.
type size int64

var _ pflag.Value = (*size)(nil)

// units are the factors of the letters behind a number.
var units = map[byte]float64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Set reads a number and its unit.
func (s *size) Set(text string) error {
	number, unit := strings.ToLower(text), 1.0
	if n := len(number); n > 0 && units[number[n-1]] != 0 {
		number, unit = number[:n-1], units[number[n-1]]
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f*unit >= 1 && f*unit < math.MaxInt64) {
		return fmt.Errorf("want a size such as 512m or 2g")
	}
	*s = size(f * unit)
	return nil
}

// Type is what help shows in place of the value.
func (s *size) Type() string { return "SIZE" }
