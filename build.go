package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// A buildInfo describes how the binary was built.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // the commit; "" if it is not known
	Modified bool   `json:"modified"` // the tree had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the files that it writes
}

func newBuildInfo(info *debug.BuildInfo) buildInfo {
	b := buildInfo{Version: cmp.Or(info.Main.Version, noVersion), Go: cmp.Or(info.GoVersion, runtime.Version()), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: schemaVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b buildInfo) String() string {
	text := "sello " + b.Version
	if b.Revision != "" {
		text += ", commit " + b.Revision
	}
	if b.Modified {
		text += " con cambios"
	}
	return fmt.Sprintf("%s, %s %s, esquema %d", text, b.Go, b.Platform, b.Schema)
}

// differs reports whether two builds are known to be of different sources. go run and a build
// without Git tell no commit, and a build of a commit may be called by a tag or not.
func (b buildInfo) differs(o buildInfo) bool {
	switch {
	case b.Revision != "" && o.Revision != "":
		return b.Revision != o.Revision || b.Modified != o.Modified
	case b.Version == noVersion || o.Version == noVersion:
		return b.Schema != o.Schema
	}
	return b.Version != o.Version
}

// thisBuild describes this binary.
func thisBuild() buildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return newBuildInfo(info)
}
