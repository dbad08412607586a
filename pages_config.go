package main

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The configurations that were applied (contract §22): which there are, how two of them differ,
// and the document of each, which the form of the document can begin with.

const versionsPath = "/panel/configuracion/versiones"

func versionArea() panelArea {
	return panelArea{pages: []panelPage{
		{versionsPath, "config:write", "versions", versionsPage},
		{versionsPath + "/comparar", "config:write", "version", versionPage},
	}}
}

// codeNoVersion says that the organization has no such version.
var codeNoVersion = errorCode{"version_not_found", http.StatusNotFound, ""}

// A versionsView is a page of the list, newest first.
type versionsView struct {
	Rows  []versionRow
	Pager pagerView
	Total uint64
}

// A versionRow is a version.
type versionRow struct {
	Number  uint64
	At      instant    // 0: before versions were kept
	By      *createdBy // nil: likewise
	Changes int        // against the version before; -1: there is none
}

// Path is the page of the version.
func (r versionRow) Path() string { return versionPath(r.Number) }

func versionPath(number uint64) string {
	return withQuery(versionsPath+"/comparar", []pair{{"despues", strconv.FormatUint(number, 10)}})
}

// DocumentPath is the form of the document, which begins with the version's.
func (r versionRow) DocumentPath() string {
	return withQuery("/panel/configuracion/documento", []pair{{versionParam, strconv.FormatUint(r.Number, 10)}})
}

func versionsPage(v *panelRequest) (any, fillFunc) {
	view := new(versionsView)
	list := v.ask(listVersions, v.params("page")...)
	return view, func(t *txn) error {
		found, err := resultOf[listShape[versionRow]](t, list)
		view.Rows, view.Pager, view.Total = found.Data, v.pager(found.Meta), found.Meta.Total
		return err
	}
}

func listVersions(r *request) action {
	p := r.page()
	return func(t *txn) (any, error) {
		var numbers []uint64
		for skipped := p.skip(); skipped < t.cfg.Version && uint64(len(numbers)) < p.limit; skipped++ {
			numbers = append(numbers, t.cfg.Version-skipped)
		}
		var later *config // the one of the row above
		return newList(t, numbers, t.cfg.Version, p, func(t *txn, n uint64) (row versionRow, err error) {
			if row, err = newVersionRow(t, n); err != nil {
				return row, err
			}
			cfg := later
			if cfg == nil {
				if cfg, err = existingConfig(t, n); err != nil {
					return row, err
				}
			}
			if later = nil; n == 1 {
				row.Changes = -1
				return row, nil
			}
			if later, err = existingConfig(t, n-1); err != nil {
				return row, err
			}
			changes, err := differences(later, cfg)
			row.Changes = len(changes)
			return row, err
		})
	}
}

// newVersionRow is a version that there is, without its changes.
func newVersionRow(t *txn, number uint64) (versionRow, error) {
	x, err := existing[configVersion](t.Tx, versionKey(t.org, number))
	if err != nil {
		return versionRow{}, err
	}
	row := versionRow{Number: number, At: x.AppliedAt}
	if row.At != 0 {
		row.By, err = newCreatedBy(t, x.By)
	}
	return row, err
}

// existingConfig is configAt of a version that must be there.
func existingConfig(t *txn, number uint64) (*config, error) {
	cfg, err := configAt(t, number)
	if err == nil && cfg == nil {
		err = unreadable(versionKey(t.org, number))
	}
	return cfg, err
}

// A versionView is a version beside another one, and its document.
type versionView struct {
	versionRow
	Older  uint64 // the one that it is compared with; 0: none
	Groups []diffGroup
	Text   string
	Now    bool // it is the current one
}

func (w *versionView) title(f *pageData) string { return f.T("version.title", f.Count(w.Number)) }

func versionPage(v *panelRequest) (any, fillFunc) {
	view := new(versionView)
	return view, func(t *txn) error {
		number, cfg, err := v.version(t, "despues", t.cfg.Version)
		if err != nil {
			return err
		}
		if view.versionRow, err = newVersionRow(t, number); err != nil {
			return err
		}
		view.Now = number == t.cfg.Version
		if view.Text, err = documentText(cfg); err != nil {
			return err
		}
		older, before, err := v.version(t, "antes", number-1)
		if err != nil || before == nil {
			return err
		}
		changes, err := differences(before, cfg)
		view.Older, view.Groups = older, prose{v.format(), v.lang}.groupsOf(changes)
		return err
	}
}

// version is the version that a parameter of the page's query names, or the given one; none if
// that is 0. That there is no such one is a fault of the query.
func (v *panelRequest) version(t *txn, name string, otherwise uint64) (uint64, *config, error) {
	number := otherwise
	if text := v.param(name); text != "" {
		asked, err := strconv.ParseUint(text, 10, 64)
		if err != nil || asked == 0 || asked > t.cfg.Version {
			v.faults = append(v.faults, newError(codeNoVersion).on(name))
		} else {
			number = asked
		}
	}
	if number == 0 {
		return 0, nil, nil
	}
	cfg, err := existingConfig(t, number)
	return number, cfg, err
}

// documentText is a configuration's document as people read it.
func documentText(cfg *config) (string, error) {
	raw, err := json.MarshalIndent(cfg.document(), "", "  ")
	return string(raw), err
}

// VersionField is the control for a version of the two that are compared.
func (f *pageData) VersionField(name, label string, number uint64) control {
	text := f.request.param(name) // also one that there is not
	if text == "" && number > 0 {
		text = strconv.FormatUint(number, 10)
	}
	return f.Field(name, label, "numeric", text)
}

// versionParam says which version's document the form of the document begins with.
const versionParam = "version"
