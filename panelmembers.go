package main

import (
	"bytes"
	"encoding/csv"

	"sello/internal/sheet"
)

// The customers in a segment: a list by cursor, and the same as a file.

func memberArea() panelArea {
	return panelArea{[]panelPage{
		{membersPath, "customers:read", "members", membersPage},
	}, []panelForm{fileForm(membersPath+"/csv", "data:export", membersPath, membersExport)}}
}

const membersPath = "/panel/segmentos/{segmentId}/clientes"

// A membersView is a page of the customers in a segment.
type membersView struct {
	Name, Sentence string
	Active         bool
	Begins         bool // the list begins with this page
	Rows           []customerRow
	Next           string // the address of the next page; "": there is none
	Few            bool   // the page is short, and is not the last
	Give           string // where everybody is given points; "" if the member may not
	Export         string // where the file is; "" if the member may not have it
}

func (v *membersView) title(*pageData) string { return v.Name }

func membersPage(v *panelRequest) (any, fillFunc) {
	view := &membersView{Begins: v.param("after") == ""}
	list := v.ask(listMembers, v.params("after")...)
	return view, func(t *txn) error {
		if err := v.mayAll("customers:read"); err != nil {
			return err
		}
		s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
		if s == nil {
			return newError(codeSegmentNotFound)
		}
		view.Name, view.Sentence, view.Active = s.Name, wordingOf(v, t.cfg).segment(&s.Rule), s.IsActive
		if v.mayAll("points:write") == nil {
			view.Give = "/panel/segmentos/" + s.ID.String() + "/dar"
		}
		if v.mayAll("data:export") == nil {
			view.Export = v.r.URL.EscapedPath() + "/csv"
		}
		found, err := resultOf[walkedCustomers](t, list)
		if err != nil {
			return err
		}
		if next := textOr(found.Next, ""); next != "" {
			view.Next, view.Few = withQuery(v.r.URL.EscapedPath(), []pair{{"after", next}}), len(found.Data) < defaultLimit
		}
		view.Rows, err = v.customerRows(t, found.Data, "")
		return err
	}
}

// mostMembersBytes bounds the file, which is made in memory. After that it names the command that
// writes all.
const mostMembersBytes = 64 << 20

// membersExport is the segment's customers as CSV, with the columns of a full export, guarded for
// spreadsheets. It is read as it is at several moments, so that no transaction takes long.
func membersExport(v *panelRequest) (*download, fillFunc) {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	in := exportRequest{Kind: importCustomers, Full: true}
	file := &download{name: "segmento.csv", media: "text/csv; charset=utf-8"}
	b.WriteString(sheet.MarkUTF8)
	out.Write(columnsOf(in))
	part := func(t *txn) error {
		for _, p := range []permission{"customers:read", "data:export"} {
			if err := v.mayAll(p); err != nil {
				return err
			}
		}
		s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
		if s == nil {
			return newError(codeSegmentNotFound)
		}
		in.Segment, file.name, file.data = s.Key, s.Key+".csv", segmentData(s.Key)
		page, err := exportRows(t, in)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			sheet.Guard(row)
			out.Write(row)
		}
		in.After = page.Next
		return nil
	}
	for err := v.fill(part); in.After > 0 || err != nil; err = v.fill(part) {
		if err != nil {
			return file, func(*txn) error { return err }
		}
		if b.Len() > mostMembersBytes {
			out.Write([]string{"… sello export customers -full -segment " + in.Segment})
			break
		}
	}
	out.Flush()
	file.body = b.Bytes()
	return file, func(*txn) error { return out.Error() }
}
