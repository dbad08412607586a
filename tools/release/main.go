// Release makes the files of a release from a commit: archives for five systems, packages
// for Debian, a list of what they are made of, and their sums. The same commit and the same
// Go give the same bytes, wherever they are made.
//
//	go -C tools/release run . -o /tmp/dist
//	go -C tools/release run . -o /tmp/dist -commit v1.4.0 -targets linux/amd64
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const allTargets = "linux/amd64 linux/arm64 linux/arm darwin/arm64 windows/amd64"

func main() {
	r := release{}
	flag.StringVar(&r.out, "o", "dist", "directory for the files; it must be empty or missing")
	flag.StringVar(&r.repository, "repository", "../..", "repository")
	flag.StringVar(&r.commit, "commit", "HEAD", "what is built; changes that are not committed are not")
	targets := flag.String("targets", allTargets, "systems, as GOOS/GOARCH")
	flag.Parse()
	r.targets = strings.Fields(*targets)
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, name := range r.made {
		fmt.Println(filepath.Join(r.out, name))
	}
}

// A release is being made.
type release struct {
	out, repository, commit string
	targets                 []string

	source  string // directory with the commit, and nothing else
	at      time.Time
	version string // without the v
	made    []string
	sbom    sbom
}

// A file of an archive.
type file struct {
	name string // with slashes
	mode int64
	data []byte
}

// Documents of an archive.
var documents = []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs", "packaging", "demo.json", "openapi.json"}

func (r *release) make() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if left, err := os.ReadDir(r.out); err != nil || len(left) > 0 {
		return cmp.Or(err, fmt.Errorf("%s is not empty", r.out))
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := r.checkOut(filepath.Join(work, "source")); err != nil {
		return err
	}
	shared, err := r.documents()
	if err != nil {
		return err
	}
	completions, told, err := r.ask(filepath.Join(work, "here"))
	if err != nil {
		return err
	}
	for _, target := range r.targets {
		binary, err := r.build(target, filepath.Join(work, "binary"))
		if err != nil {
			return err
		}
		if err := r.archive(target, binary, slices.Concat(shared, completions)); err != nil {
			return err
		}
		if arch := debianArch[target]; arch != "" {
			if err := r.write(fmt.Sprintf("sello_%s_%s.deb", r.debianVersion(), arch), r.debian(arch, binary, shared, completions, told)); err != nil {
				return err
			}
		}
	}
	list, err := r.sbom.encode(r)
	if err == nil {
		err = r.write("sello-"+r.version+".cdx.json", list)
	}
	if err != nil {
		return err
	}
	return r.sums()
}

// checkOut clones the commit, so that what Go says of the source in the binary is true, and
// no other file gets in.
func (r *release) checkOut(dir string) error {
	r.source = dir
	repository, err := filepath.Abs(r.repository)
	if err != nil {
		return err
	}
	commit, err := output("", nil, "git", "-C", repository, "rev-parse", "--verify", r.commit+"^{commit}")
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"clone", "-q", "--no-checkout", repository, dir},
		{"-C", dir, "-c", "advice.detachedHead=false", "checkout", "-q", commit},
	} {
		if _, err := output("", nil, "git", args...); err != nil {
			return err
		}
	}
	seconds, err := output("", nil, "git", "-C", dir, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	r.at = time.Unix(n, 0).UTC()
	return err
}

// output runs a command and returns what it wrote, without the last line's end.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), err
}

// compile builds the commit for a system.
func (r *release) compile(system, arch, path string) error {
	_, err := output(r.source, []string{
		"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOARM=6", "GOAMD64=v1", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=",
	}, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, ".")
	return err
}

// build returns a binary, and notes what it is made of.
func (r *release) build(target, path string) ([]byte, error) {
	system, arch, _ := strings.Cut(target, "/")
	if err := r.compile(system, arch, path); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r.sbom.add(target, binary, info)
	return binary, nil
}

// ask builds the commit for this system, and asks it for its version, completions and help.
func (r *release) ask(path string) (completions []file, told *help, err error) {
	if err := r.compile(runtime.GOOS, runtime.GOARCH, path); err != nil {
		return nil, nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	r.version = strings.TrimPrefix(info.Main.Version, "v")
	if r.version == "" || r.version == "(devel)" || strings.HasSuffix(r.version, "+dirty") {
		return nil, nil, fmt.Errorf("the commit has no version: %q", r.version)
	}
	for name, shell := range map[string]string{"sello.bash": "bash", "_sello": "zsh", "sello.fish": "fish"} {
		text, err := output("", nil, path, "completion", shell)
		if err != nil {
			return nil, nil, err
		}
		completions = append(completions, file{"completions/" + name, 0o644, []byte(text + "\n")})
	}
	sortFiles(completions)
	told = &help{}
	if told.program, err = output("", nil, path, "-h"); err == nil {
		told.serve, err = output("", nil, path, "serve", "-h")
	}
	return completions, told, err
}

func sortFiles(list []file) {
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// documents reads what every archive has besides the binary.
func (r *release) documents() (list []file, err error) {
	for _, name := range documents {
		err := filepath.WalkDir(filepath.Join(r.source, name), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(r.source, path)
			list = append(list, file{filepath.ToSlash(rel), 0o644, data})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	sortFiles(list)
	return list, nil
}

// archive writes the archive of a system: zip for Windows, tar.gz for the others.
func (r *release) archive(target string, binary []byte, rest []file) error {
	system, arch, _ := strings.Cut(target, "/")
	name := fmt.Sprintf("sello-%s-%s-%s", r.version, system, arch)
	program := "sello"
	if system == "windows" {
		program += ".exe"
	}
	files := append([]file{{program, 0o755, binary}}, rest...)
	for i := range files {
		files[i].name = name + "/" + files[i].name
	}
	if system == "windows" {
		return r.write(name+".zip", zipped(files, r.at))
	}
	return r.write(name+".tar.gz", tarred(files, r.at))
}

func (r *release) write(name string, data []byte) error {
	r.made = append(r.made, name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// sums writes SHA256SUMS, as sha256sum -c reads it.
func (r *release) sums() error {
	slices.Sort(r.made)
	var text strings.Builder
	for _, name := range r.made {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum(data), name)
	}
	return r.write("SHA256SUMS", []byte(text.String()))
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
