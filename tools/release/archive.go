package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
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

// tarred returns a tar.gz. A file whose name ends with a slash is a directory.
func tarred(files []file, at time.Time) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(err)
	w := tar.NewWriter(z)
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
	must(z.Close())
	return b.Bytes()
}

// Debian's names of architectures.
var debianArch = map[string]string{"linux/amd64": "amd64", "linux/arm64": "arm64", "linux/arm": "armhf"}

// debianVersion is the version in Debian's order: what comes before a version sorts so.
func (r *release) debianVersion() string { return strings.ReplaceAll(r.version, "-", "~") }

const debianControl = `Package: sello
Version: %s
Architecture: %s
Maintainer: sello <sello@localhost>
Installed-Size: %d
Recommends: systemd
Section: net
Priority: optional
Description: customer loyalty in one binary and one file
 Shops and apps call its HTTP API to enrol customers, register sales, give and
 take points, and redeem rewards.
`

// The scripts start nothing by themselves: an address and a certificate may have to be
// chosen first. An upgrade restarts a server that runs. The data stays, always.
const debianInstalled = `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
! command -v systemd-sysusers >/dev/null || systemd-sysusers sello.conf
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart sello.service
`

const debianRemoving = `#!/bin/sh
set -e
[ "$1" = remove ] && [ -d /run/systemd/system ] || exit 0
systemctl disable --now sello.service
`

const debianRemoved = `#!/bin/sh
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
`

// debian returns a package for Debian: an ar archive of two tar archives.
func (r *release) debian(arch string, binary []byte, documents, completions []file) []byte {
	installed := []file{{"usr/bin/sello", 0o755, binary}}
	for _, f := range documents {
		name := "usr/share/doc/sello/" + f.name
		switch f.name {
		case "packaging/systemd/sello.service":
			name = "lib/systemd/system/sello.service"
		case "packaging/systemd/sello.sysusers.conf":
			name = "usr/lib/sysusers.d/sello.conf"
		case "LICENSE":
			name = "usr/share/doc/sello/copyright"
		}
		installed = append(installed, file{name, f.mode, f.data})
	}
	for i, name := range []string{"usr/share/zsh/vendor-completions/_sello", "usr/share/bash-completion/completions/sello", "usr/share/fish/vendor_completions.d/sello.fish"} {
		installed = append(installed, file{name, 0o644, completions[i].data})
	}
	size := 0
	for _, f := range installed {
		size += len(f.data)
	}
	control := []file{
		{"./control", 0o644, fmt.Appendf(nil, debianControl, r.debianVersion(), arch, (size+1023)/1024)},
		{"./postinst", 0o755, []byte(debianInstalled)},
		{"./postrm", 0o755, []byte(debianRemoved)},
		{"./prerm", 0o755, []byte(debianRemoving)},
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, f := range []file{
		{"debian-binary", 0, []byte("2.0\n")},
		{"control.tar.gz", 0, tarred(control, r.at)},
		{"data.tar.gz", 0, tarred(withDirectories(installed), r.at)},
	} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", f.name, r.at.Unix(), 0, 0, "100644", len(f.data))
		b.Write(f.data)
		if len(f.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
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
