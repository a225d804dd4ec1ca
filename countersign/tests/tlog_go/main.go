// Reads a published log with the packages that Go's checksum database uses: opens the signed
// checkpoint, authenticates every tile against it, and proves and checks a record.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type folder string

func (folder) Height() int { return 8 }

func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		// Their paths name the height of a tile, which is always the same, as well.
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		data, err := os.ReadFile(filepath.Join(string(f), path))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

func (folder) SaveTiles([]tlog.Tile, [][]byte) {}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	dir, key := os.Args[1], os.Args[2]
	text, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	must(err)
	verifier, err := note.NewVerifier(key)
	must(err)
	opened, err := note.Open(text, note.VerifierList(verifier))
	must(err)
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err)
	root, err := base64.StdEncoding.DecodeString(lines[2])
	must(err)
	var tree tlog.Tree
	tree.N = size
	copy(tree.Hash[:], root)
	reader := tlog.TileHashReader(tree, folder(dir))
	for _, index := range []int64{0, size / 2, size - 1} {
		proof, err := tlog.ProveRecord(size, index, reader)
		must(err)
		bundle, err := os.ReadFile(entries(dir, index, size))
		must(err)
		entry := bundle[index%256*34+2 : index%256*34+34]
		hash := sha256.Sum256(append([]byte{0}, entry...))
		must(tlog.CheckRecord(proof, size, tree.Hash, index, tlog.Hash(hash)))
	}
	fmt.Printf("accepted %s at %d\n", lines[0], size)
}

func entries(dir string, index, size int64) string {
	number, width := index/256, min(256, size-index/256*256)
	name := fmt.Sprintf("tile/entries/%03d", number)
	if width < 256 {
		name += fmt.Sprintf(".p/%d", width)
	}
	return filepath.Join(dir, name)
}
