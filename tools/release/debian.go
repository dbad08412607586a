package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The package for Debian: an ar archive of two tar archives. lintian has nothing to say
// against it but what debianOverrides names.

// Debian's names of architectures.
var debianArch = map[string]string{"linux/amd64": "amd64", "linux/arm64": "arm64", "linux/arm": "armhf"}

// debianVersion is the version in Debian's order: what comes before a version sorts so.
func (r *release) debianVersion() string { return strings.ReplaceAll(r.version, "-", "~") }

const debianMaintainer = "sello <sello@localhost>"

const debianControl = `Package: sello
Version: %s
Architecture: %s
Maintainer: %s
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
chmod 0600 /etc/sello.env # systemd reads it as root; passwords may be in one of before
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload
	deb-systemd-invoke try-restart sello.service
fi
[ -n "$2" ] || cat <<'END'
sello no se inicia solo. Revisa /etc/sello.env y sigue con: systemctl enable --now sello
Luego, la primera organización: /usr/share/doc/sello/docs/first-half-hour.md
END
`

const debianRemoving = `#!/bin/sh
set -e
[ "$1" = remove ] && [ -d /run/systemd/system ] || exit 0
deb-systemd-invoke disable sello.service
deb-systemd-invoke stop sello.service
`

const debianRemoved = `#!/bin/sh
set -e
[ -d /run/systemd/system ] || exit 0
systemctl --system daemon-reload
`

const debianOverrides = `# Go programs are.
sello: statically-linked-binary [usr/bin/sello]
# There is no address that mail could be sent to.
sello: bogus-mail-host Maintainer *
sello: bogus-mail-host-in-debian-changelog *
# It may have the password of a database.
sello: non-standard-file-perm 0600 != 0644 [etc/sello.env]
`

const debianCopyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: sello

Files: *
Copyright: 2026 the authors of sello
License: Apache-2.0

License: Apache-2.0
 The text of the licence is in /usr/share/common-licenses/Apache-2.0 on Debian. NOTICE, beside this
 file, names what was taken from others.
`

// debian returns the package. documents, completions and help are the same for all systems.
func (r *release) debian(arch string, binary []byte, documents, completions []file, h *help) []byte {
	installed := []file{
		{"usr/bin/sello", 0o755, binary},
		{"usr/share/man/man1/sello.1.gz", 0o644, gzipped(h.manual(r.version, r.at))},
		{"usr/share/doc/sello/changelog.gz", 0o644, gzipped(fmt.Appendf(nil, "sello (%s) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md.\n\n -- %s  %s\n",
			r.debianVersion(), debianMaintainer, r.at.Format(time.RFC1123Z)))},
		{"usr/share/doc/sello/copyright", 0o644, []byte(debianCopyright)},
		{"usr/share/lintian/overrides/sello", 0o644, []byte(debianOverrides)},
	}
	for _, f := range documents {
		name, data := "usr/share/doc/sello/"+f.name, f.data
		switch {
		case f.name == "LICENSE":
			continue // is in debianCopyright
		case f.name == "packaging/systemd/sello.service":
			name = "lib/systemd/system/sello.service"
			installed = append(installed, file{"etc/sello.env", 0o600, h.environment(data)})
		case f.name == "packaging/systemd/sello.sysusers.conf":
			name = "usr/lib/sysusers.d/sello.conf"
		}
		installed = append(installed, file{name, f.mode, data})
	}
	for i, name := range []string{"usr/share/zsh/vendor-completions/_sello", "usr/share/bash-completion/completions/sello", "usr/share/fish/vendor_completions.d/sello.fish"} {
		installed = append(installed, file{name, 0o644, completions[i].data})
	}
	size := 0
	for _, f := range installed {
		size += len(f.data)
	}
	control := []file{
		{"./control", 0o644, fmt.Appendf(nil, debianControl, r.debianVersion(), arch, debianMaintainer, (size+1023)/1024)},
		{"./conffiles", 0o644, []byte("/etc/sello.env\n")},
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

// A help is what the program says of its command line.
type help struct{ program, serve string }

// flagHelp is a flag of sello serve with its variable: its default and what it means.
var flagHelp = regexp.MustCompile(`(?m)^  -\S+.*\n        (.*) \[(SELLO_\w+)\]$`)

var usualValue = regexp.MustCompile(` \(por omisión (.*)\)$`)

// unitSets is a variable that the unit sets.
var unitSets = regexp.MustCompile(`\b(SELLO_\w+)=(\S+)`)

// environment is /etc/sello.env: each variable of sello serve as a comment, with what it is
// without this file.
func (h *help) environment(unit []byte) []byte {
	set := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^Environment=.*`).FindAllString(string(unit), -1) {
		for _, m := range unitSets.FindAllStringSubmatch(line, -1) {
			set[m[1]] = m[2]
		}
	}
	b := bytes.NewBufferString("# Opciones de sello serve. Quita el # de las que cambies; luego: systemctl restart sello\n")
	for _, m := range flagHelp.FindAllStringSubmatch(h.serve, -1) {
		text, name, usual := m[1], m[2], ""
		if u := usualValue.FindStringSubmatch(text); u != nil {
			text, usual = strings.TrimSuffix(text, u[0]), u[1]
		}
		fmt.Fprintf(b, "\n# %s\n#%s=%s\n", text, name, cmp.Or(set[name], usual))
	}
	return b.Bytes()
}

// manual is the page of the program for man.
func (h *help) manual(version string, at time.Time) []byte {
	text := strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(h.program)
	text = regexp.MustCompile(`(?m)^[.']`).ReplaceAllString(text, `\&$0`)
	return fmt.Appendf(nil, `.TH SELLO 1 %s "sello %s"
.SH NAME
sello \- customer loyalty in one binary and one file
.SH SYNOPSIS
.B sello
.I COMMAND
.RI [ options ]
.SH DESCRIPTION
Shops and apps call its HTTP API to enrol customers, register sales, give and take points, and redeem rewards.
Its commands and their help are in Spanish:
.PP
.nf
%s
.fi
.SH FILES
.TP
.I /etc/sello.env
Variables of sello serve as the service runs it.
.TP
.I /var/lib/sello/sello.db
The data.
.SH SEE ALSO
.I /usr/share/doc/sello/README.md
and the directory docs beside it.
`, at.Format(time.DateOnly), version, text)
}
