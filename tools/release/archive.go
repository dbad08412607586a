package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"path"
	"strings"
	"time"
)

// must panics: a bytes.Buffer takes everything.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func zipped(files []file, at time.Time) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(0o644)
		entry, err := w.CreateHeader(h)
		must(err)
		_, err = entry.Write(f.data)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(err)
	_, err = z.Write(data)
	must(err)
	must(z.Close())
	return b.Bytes()
}

// tarred returns a tar.gz. A file whose name ends with a slash is a directory.
func tarred(files []file, at time.Time) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		must(w.WriteHeader(h))
		_, err := w.Write(f.data)
		must(err)
	}
	must(w.Close())
	return gzipped(b.Bytes())
}

// withDirectories adds the directories that the files are in, each before what it holds.
func withDirectories(files []file) (list []file) {
	have := map[string]bool{".": true}
	list = append(list, file{"./", 0o755, nil})
	var add func(dir string)
	add = func(dir string) {
		if !have[dir] {
			have[dir] = true
			add(path.Dir(dir))
			list = append(list, file{"./" + dir + "/", 0o755, nil})
		}
	}
	sortFiles(files)
	for _, f := range files {
		add(path.Dir(f.name))
		list = append(list, file{"./" + f.name, f.mode, f.data})
	}
	return list
}
