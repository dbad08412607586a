// Phonedata writes internal/contact/phonedata.txt, the table of the world's
// numbering plans, from the libphonenumber metadata inside the pinned
// github.com/nyaruka/phonenumbers. The format is described in phone.go there.
// The same version of the module always gives the same bytes.
//
// Usage, from the root of the repository (or: go generate ./...):
//
//	go run -C tools/phonedata . ../../internal/contact/phonedata.txt
//
// To take newer metadata, raise the version in go.mod and run it again:
//
//	go get -C tools/phonedata github.com/nyaruka/phonenumbers/v2@latest
package main

import (
	"bytes"
	"fmt"
	"log"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers/v2"
	"github.com/nyaruka/phonenumbers/v2/metadata"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("phonedata: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: phonedata file")
	}
	if err := os.WriteFile(os.Args[1], table(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// table returns the whole table: one stanza per numbering plan, in the order of
// the calling codes, the main region of a shared code first.
func table() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# libphonenumber %s, written by tools/phonedata; do not edit.\n", metadata.Version)
	for i, code := range slices.Sorted(maps.Keys(phonenumbers.GetSupportedCallingCodes())) {
		if i > 0 {
			out.WriteByte('\n')
		}
		regions := phonenumbers.GetRegionCodesForCountryCode(code)
		for j, region := range regions {
			if j > 0 {
				out.WriteByte('\n')
			}
			writeStanza(&out, find(code, region), len(regions) > 1)
		}
	}
	return out.Bytes()
}

// find returns the numbering plan of a region under a calling code. The region
// "001" has one for each of its codes.
func find(code int, region string) *metadata.PhoneMetadata {
	all, err := phonenumbers.MetadataCollection()
	if err != nil {
		log.Fatal(err)
	}
	for _, plan := range all.GetMetadata() {
		if plan.GetId() == region && plan.GetCountryCode() == int32(code) {
			return plan
		}
	}
	log.Fatalf("no metadata for +%d %s", code, region)
	return nil
}

// writeStanza writes one numbering plan. Leading digits matter only where
// regions share a calling code.
func writeStanza(out *bytes.Buffer, plan *metadata.PhoneMetadata, shared bool) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(out, "%s %s\n", key, value)
		}
	}
	general := plan.GetGeneralDesc()
	line("region", plan.GetId())
	line("code", fmt.Sprint(plan.GetCountryCode()))
	line("idd", plan.GetInternationalPrefix())
	line("trunk", plan.GetNationalPrefixForParsing())
	line("becomes", group.ReplaceAllString(plan.GetNationalPrefixTransformRule(), "$${$1}"))
	if shared {
		line("leading", plan.GetLeadingDigits())
	}
	line("lengths", numbers(general.GetPossibleLength()))
	line("local", numbers(general.GetPossibleLengthLocalOnly()))
	line("plan", general.GetNationalNumberPattern())

	// The kinds that make a number valid for libphonenumber. Kinds that are
	// dialled only inside the country are not among them.
	var patterns []string
	for _, kind := range []*metadata.PhoneNumberDesc{
		plan.GetFixedLine(), plan.GetMobile(), plan.GetTollFree(), plan.GetPremiumRate(), plan.GetSharedCost(),
		plan.GetPersonalNumber(), plan.GetVoip(), plan.GetPager(), plan.GetUan(), plan.GetVoicemail(),
	} {
		if p := kind.GetNationalNumberPattern(); p != "" && !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
			line("valid", p)
		}
	}
}

// group is a reference to a capturing group in a rewriting rule. It is written
// as ${1}, so that regexp.Expand reads it right before any digit.
var group = regexp.MustCompile(`\$(\d)`)

func numbers(lengths []int32) string {
	return strings.Trim(fmt.Sprint(lengths), "[]")
}
