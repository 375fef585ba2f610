package cli

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"1": 1, "4096": 4096, "2k": 2048, "512M": 512 << 20, "1.5g": 3 << 29, "1t": 1 << 40} {
		var got size
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("Set(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "m", "0", "-1", "-2g", "1x", "nan", "inf", "0.1", "99999999t", "2 g"} {
		var got size
		if err := got.Set(text); err == nil || got != 0 {
			t.Errorf("Set(%q) = %d, %v, want an error", text, got, err)
		}
	}
}
