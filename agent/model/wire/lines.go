package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// lineLimit bounds a line of a stream: a model's longest message with all its escapes.
const lineLimit = 16 << 20

var errLongLine = errors.New("a line of the stream is longer than 16 MiB")

// Lines calls each with every line of a stream that is not blank, without its end (LF or
// CRLF), until the stream ends, each returns done, or an error occurs. A last line without
// an end is a line too; whole tells that nothing of it is missing. The line is each's until
// it returns.
func Lines(r io.Reader, each func(line []byte, whole bool) (done bool, err error)) error {
	return lines(r, func(line []byte, whole bool) (bool, error) {
		if len(bytes.TrimSpace(line)) == 0 {
			return false, nil
		}
		return each(line, whole)
	})
}

func lines(r io.Reader, each func(line []byte, whole bool) (bool, error)) error {
	in := bufio.NewReaderSize(r, 32<<10)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = in.Discard(3) // a byte order mark is no part of the first line
	}
	var long []byte // the beginning of a line that does not fit into the reader's buffer
	for {
		part, err := in.ReadSlice('\n')
		line := part
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			line = long
		}
		if len(line) > lineLimit {
			return errLongLine
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		ended := err == nil
		if ended {
			line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		}
		if ended || len(line) > 0 {
			if done, eachErr := each(Valid(line), ended); done || eachErr != nil {
				return eachErr
			}
		}
		if !ended {
			return nil
		}
		long = long[:0]
	}
}

// Valid returns text that is UTF-8: what is not becomes U+FFFD, since it would be refused
// when it is sent back.
func Valid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// Whole reads a reply that is sent in one piece.
func Whole[T any](r io.Reader, decode func(data []byte) (T, error)) (T, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		var none T
		return none, err
	}
	return decode(Valid(data))
}

// IsObject reports whether what r gives begins with a JSON object, and returns a reader of
// all of it. Some servers answer a request for a stream with a whole reply, or an error.
func IsObject(r io.Reader) (bool, io.Reader) {
	in := bufio.NewReader(r)
	for n := 1; n <= in.Size(); n++ {
		head, err := in.Peek(n)
		if err != nil {
			return false, in
		}
		if c := head[n-1]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c == '{', in
		}
	}
	return false, in
}

// Events calls each with the data of every server-sent event, until the stream ends, each
// returns done, or an error occurs. Comments, which keep connections alive, and the other
// fields are left out; an event that the stream's end cuts off is none.
func Events(r io.Reader, each func(data []byte) (done bool, err error)) error {
	var data []byte
	open := false // data belongs to an event that has not ended
	return lines(r, func(line []byte, whole bool) (bool, error) {
		if !whole {
			return true, nil
		}
		if len(line) == 0 {
			if !open {
				return false, nil
			}
			open = false
			done, err := each(data)
			data = data[:0]
			return done, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			return false, nil
		}
		if open {
			data = append(data, '\n')
		}
		open = true
		data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		if len(data) > lineLimit {
			return false, errLongLine
		}
		return false, nil
	})
}
