package worktree

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"path/filepath"
	"slices"
)

// writePack puts objects into the store as one pack, which need not outlive a crash. The same
// object may be among them twice.
func (r *Repo) writePack(objects []object) error {
	objects = slices.SortedFunc(slices.Values(objects), func(a, b object) int { return cmp.Compare(a.id, b.id) })
	objects = slices.CompactFunc(objects, func(a, b object) bool { return a.id == b.id })

	var pack bytes.Buffer
	pack.WriteString("PACK")
	pack.Write(words(2, len(objects))) // version, and how many follow
	// Not compressed: half of a folder is ids, which cannot be, and nothing keeps a merge for long.
	z, err := zlib.NewWriterLevel(nil, zlib.NoCompression)
	if err != nil {
		return err
	}
	places := make([]packed, len(objects))
	for i, o := range objects {
		from := pack.Len()
		pack.Write(o.packHead())
		z.Reset(&pack)
		if _, err := z.Write(o.data); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		places[i] = packed{from, crc32.ChecksumIEEE(pack.Bytes()[from:])}
	}
	sum := r.sum(pack.Bytes())
	pack.Write(sum)
	index, err := r.packIndex(objects, places, sum)
	if err != nil {
		return err
	}
	// The index last: git finds packs by it.
	name := filepath.Join(r.objects(), "pack", "pack-"+hex.EncodeToString(sum))
	if err := r.git.point("before pack"); err != nil {
		return err
	}
	if err := writeWhole(name+".pack", pack.Bytes()); err != nil {
		return err
	}
	if err := r.git.point("before index of pack"); err != nil {
		return err
	}
	if err := writeWhole(name+".idx", index); err != nil {
		return err
	}
	return r.git.point("after pack")
}

// packed is where an object begins in a pack, and what guards its bytes there.
type packed struct {
	offset int
	crc    uint32
}

// packHead is what stands before an object in a pack: its kind and size, the lower bits first.
func (o object) packHead() []byte {
	kinds := map[string]byte{"commit": 1, "tree": 2}
	size := len(o.data)
	head := []byte{kinds[o.kind]<<4 | byte(size&0xf)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	return head
}

// packIndex is the index, in its second version, of a pack of sorted objects.
func (r *Repo) packIndex(objects []object, places []packed, sum []byte) ([]byte, error) {
	var ids, crcs, offsets []byte
	var upTo [256]int // how many ids begin with at most that byte
	for i, o := range objects {
		id, err := hex.DecodeString(o.id)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id...)
		crcs = binary.BigEndian.AppendUint32(crcs, places[i].crc)
		offsets = append(offsets, words(places[i].offset)...)
		for first := int(id[0]); first < len(upTo); first++ {
			upTo[first]++
		}
	}
	index := slices.Concat([]byte("\xfftOc"), words(2), words(upTo[:]...), ids, crcs, offsets, sum)
	return append(index, r.sum(index)...), nil
}

// words writes numbers as the formats of git's have them.
func words(numbers ...int) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // of folders and commits, far below 2 GiB
	}
	return b
}
