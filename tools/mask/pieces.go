package mask

// pieceSize is how many bytes of a secret in a row give it away, and few enough that a text
// that was cut anywhere in a secret does not show more of it than that.
const pieceSize = 12

// Cut masks what is left of known values in a text that a tool has cut: a limit, or a line
// end that base64 puts every 76 characters, can fall inside a secret, and then the whole of
// it is not there to be found. It is meant for results of tools, after [Mask.Known].
func (m *Mask) Cut(s string) string {
	if len(m.pieces) == 0 || len(s) < pieceSize {
		return s
	}
	var out []byte
	copied := 0
	for i := 0; i+pieceSize <= len(s); {
		if _, piece := m.pieces[s[i:i+pieceSize]]; !piece {
			i++
			continue
		}
		end := i + pieceSize
		for end < len(s) {
			if _, more := m.pieces[s[end-pieceSize+1:end+1]]; !more {
				break
			}
			end++
		}
		out = append(append(out, s[copied:i]...), Marker...)
		i, copied = end, end
	}
	if out == nil {
		return s
	}
	return string(append(out, s[copied:]...))
}

// pieces are all runs of pieceSize bytes of values that are longer than that by some.
func pieces(values []string) map[string]struct{} {
	all := map[string]struct{}{}
	for _, v := range values {
		if len(v) < pieceSize+4 {
			continue
		}
		for i := 0; i+pieceSize <= len(v); i++ {
			all[v[i:i+pieceSize]] = struct{}{}
		}
	}
	return all
}
