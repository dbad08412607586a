package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// An sbom tells in CycloneDX 1.5 what the binaries are made of: the modules that Go has
// linked into them (as go version -m shows), Go itself, and the binaries with their sums.
type sbom struct{ components []component }

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func library(name, version, sum string) component {
	c := component{Type: "library", Name: name, Version: version, PURL: "pkg:golang/" + name + "@" + version}
	c.Ref = c.PURL
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

// add notes a binary and the modules in it.
func (s *sbom) add(target string, binary []byte, info *buildinfo.BuildInfo) {
	list := []component{
		library("std", strings.TrimPrefix(info.GoVersion, "go"), ""),
		{Type: "file", Ref: "sello " + target, Name: "sello for " + target, Hashes: []hash{{"SHA-256", sum(binary)}}},
	}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		list = append(list, library(d.Path, d.Version, d.Sum))
	}
	for _, c := range list {
		if !slices.ContainsFunc(s.components, func(known component) bool { return known.Ref == c.Ref }) {
			s.components = append(s.components, c)
		}
	}
}

func (s *sbom) encode(r *release) ([]byte, error) {
	slices.SortFunc(s.components, func(a, b component) int {
		return cmp.Or(-strings.Compare(a.Type, b.Type), strings.Compare(a.Ref, b.Ref))
	})
	var refs []string
	for _, c := range s.components {
		if c.Type == "library" {
			refs = append(refs, c.Ref)
		}
	}
	sello := component{Type: "application", Ref: "sello", Name: "sello", Version: r.version}
	out, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":     map[string]any{"timestamp": r.at.Format(time.RFC3339), "component": sello},
		"components":   s.components,
		"dependencies": []any{map[string]any{"ref": "sello", "dependsOn": refs}},
	}, "", "  ")
	return append(out, '\n'), err
}
