package main

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sello/internal/texts"
	"sello/internal/webhook"
)

// Webhooks: how far each has come, its last deliveries, what the operator's commands do with them,
// and the forms that make, change and remove one. Which there are is part of the configuration.

const webhookPath = webhooksPath + "/{hook}"

// newHookParam says on the list which webhook was made: it has no secret yet.
const newHookParam = "nuevo"

func webhookArea() panelArea {
	const need = "webhooks:manage"
	made := &panelPage{webhooksPath, need, "webhook-secret", nil}
	back := func(*panelRequest, string) string { return webhooksPath }
	return panelArea{[]panelPage{
		{webhooksPath, "webhooks:manage", "webhooks", onPlan(withForms(webhooksPage))},
		{webhookPath + "/entregas", "webhooks:manage", "deliveries", onPlan(deliveriesPage)},
	}, []panelForm{
		{path: webhookPath + "/secreto", need: need, from: webhooksPath, proof: true, handle: newSecretByForm, done: func(*panelRequest, string) string { return webhooksPath + "?" + madeParam + "=1" }, shown: made},
		{path: webhookPath + "/continuar", need: need, from: webhooksPath, handle: resumeByForm, done: back},
		{path: webhookPath + "/repetir", need: need, from: webhooksPath, proof: true, labels: "webhook", members: []formMember{{name: "from", kind: amountMember, must: true}}, handle: replayByForm, done: back},
		{path: webhookPath + "/prueba", need: need, from: webhooksPath, run: testByForm},
	}}
}

// Errors of these forms.
var (
	codeWebhookNotFound = errorCode{"webhook_not_found", http.StatusNotFound, ""}
	codeNoSecret        = errorCode{"webhook_without_secret", http.StatusBadRequest, ""}
)

type webhooksView struct {
	Hooks  []listedWebhook
	Done   bool   // the configuration was changed
	New    string // a webhook that was made and has no secret yet
	Made   bool   // the form that made a secret was sent again
	About  string // the webhook that a form was about; "" without
	Tested *webhookTest
	Newest uint64 // event
}

func webhooksPage(v *panelRequest) (any, fillFunc) {
	view := &webhooksView{Made: v.param(madeParam) != "", Done: v.param("hecho") != "", About: v.r.PathValue("hook")}
	return view, func(t *txn) (err error) {
		if view.Hooks, err = t.webhooks.list(); err != nil {
			return err
		}
		for _, h := range view.Hooks {
			if h.Key == v.param(newHookParam) && !h.HasSecret {
				view.New = h.Key
			}
		}
		n, err := t.count()
		if err == nil {
			view.Newest = n.Events
		}
		return err
	}
}

// A deliveriesView are the last attempts to deliver to a webhook, as the server remembers them.
type deliveriesView struct {
	Hook   listedWebhook
	Newest uint64  // event
	Since  instant // when the server began to remember; 0: it does not
	Rows   []deliveryRow
}

type deliveryRow struct {
	delivery
	Millis decimal
}

func (v *deliveriesView) title(*pageData) string { return v.Hook.Key }

func deliveriesPage(v *panelRequest) (any, fillFunc) {
	view, hook := &deliveriesView{}, v.r.PathValue("hook")
	return view, func(t *txn) error {
		hooks, err := t.webhooks.list()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(hooks, func(h listedWebhook) bool { return h.Key == hook })
		if i < 0 {
			return newError(codeWebhookNotFound)
		}
		view.Hook = hooks[i]
		if d := v.panel.hooks; d != nil {
			view.Since = d.since
			for _, a := range d.last(hookOf{t.org, hook}) {
				view.Rows = append(view.Rows, deliveryRow{a, decimal(a.Took.Microseconds()) * (decimalOne / 1000)})
			}
		}
		n, err := t.count()
		view.Newest = n.Events
		return err
	}
}

// A hookFactsView is for the template "hook-facts".
type hookFactsView struct {
	Page   *pageData
	Hook   listedWebhook
	Newest uint64
}

// Facts says how far a webhook has come.
func (h listedWebhook) Facts(f *pageData, newest uint64) hookFactsView {
	return hookFactsView{f, h, newest}
}

// A madeSecretView is the only page that has a webhook's secret.
type madeSecretView struct {
	shownSecret
	Hook string
}

// ofWebhook is an action on a webhook. A webhook that the organization does not have is not
// found.
func ofWebhook(hook string, do func(*txn) (any, error)) action {
	return func(t *txn) (any, error) {
		if t.cfg.webhook(hook) == nil {
			return nil, newError(codeWebhookNotFound)
		}
		v, err := do(t)
		return v, inForm(err)
	}
}

func newSecretByForm(r *request) action {
	hook := r.PathValue("hook")
	return ofWebhook(hook, func(t *txn) (any, error) {
		secret, err := t.webhooks.newSecret(hook)
		return &madeSecretView{shownSecret{webhook.SecretText(secret)}, hook}, err
	})
}

func resumeByForm(r *request) action {
	hook := r.PathValue("hook")
	return ofWebhook(hook, func(t *txn) (any, error) { return struct{}{}, t.webhooks.resume(hook) })
}

func replayByForm(r *request) action {
	hook := r.PathValue("hook")
	from := r.wholeNumber("from")
	return ofWebhook(hook, func(t *txn) (any, error) { return struct{}{}, t.webhooks.replay(hook, uint64(from)) })
}

// testByForm sends a test message and shows the page with what became of it. Sending the form
// again sends another message.
func testByForm(v *panelRequest) error {
	hook := v.r.PathValue("hook")
	if v.cfg.webhook(hook) == nil {
		return newError(codeWebhookNotFound)
	}
	if !isToken(v.token) {
		return newError(codeFormStale)
	}
	d := v.panel.hooks
	if d == nil {
		d = newDeliverer(v.api.engine, nil, v.api.log)
	}
	view, fill := v.page.show(v)
	result, err := d.test(v.context(), v.member.org, hook, v.writesAs)
	if _, refused := errors.AsType[*operatorError](err); refused { // it has no secret
		v.faults = append(v.faults, newError(codeNoSecret))
		return v.refused()
	}
	if err != nil {
		return err
	}
	if err := v.fill(fill); err != nil {
		return err
	}
	if shown, ok := view.(*webhooksView); ok {
		shown.Tested = &result
	}
	return v.render(v.page.template, view)
}

// StateTag is the state of a webhook as a word, and the class of its tag.
func (h listedWebhook) StateTag(f *pageData) (tag struct{ Class, Text string }) {
	switch {
	case h.Status != statusActive:
		tag.Text = f.T("hook.inactive")
	case !h.HasSecret:
		tag.Class, tag.Text = "warn", f.T("hook.secretless")
	case h.Paused != 0:
		tag.Class, tag.Text = "bad", f.T("hook.paused")
	case h.Failing != 0:
		tag.Class, tag.Text = "warn", f.T("hook.failing")
	case h.Pending > 0:
		tag.Text = f.T("hook.pending")
	default:
		tag.Class, tag.Text = "good", f.T("hook.done")
	}
	return tag
}

// From is the field for the event that the webhook goes on from. Its id has the webhook's
// key, unless the form was about this one.
func (h listedWebhook) From(f *pageData) control {
	c := f.Field("from", "hook.replay.from", "decimal")
	c.Hint = f.T("hook.replay.hint")
	if f.request.r.PathValue("hook") != h.Key {
		c = control{ID: c.ID + "-" + h.Key, Name: c.Name, Label: c.Label, Hint: c.Hint, Kind: c.Kind, Auto: c.Auto}
	}
	return c
}

// Wrong reports whether the page shows a fault of a field of the form about a webhook.
func (f *pageData) Wrong(hook, field string) bool {
	return f.request.r.PathValue("hook") == hook && slices.ContainsFunc(f.request.faults, func(e *apiError) bool { return e.field == field })
}

// HookWhy is why a webhook fails, in words.
func (f *pageData) HookWhy(why string) string { return webhookWhy(f.Lang, why) }

// webhookWhy is a result of whyNot in words.
func webhookWhy(lang texts.Language, why string) string {
	if name := "hook.why." + why; lang.Has(name) {
		return tr(lang, name)
	}
	return why
}

// How webhooks are made, changed and removed by hand. Which there are the configuration says,
// so these are forms that change it: of its other parts their fields have none.

const newWebhookPath = webhooksPath + "/nuevo"

func webhookEditArea() panelArea {
	const one, need = webhookPath + "/cambiar", "webhooks:manage"
	members := []formMember{wordMember("url"), boxesMember("events"), wordMember("status")}
	done := func(*panelRequest, string) string { return withQuery(webhooksPath, []pair{{"hecho", "1"}}) }
	made := func(_ *panelRequest, hook string) string {
		return withQuery(webhooksPath, []pair{{newHookParam, hook}})
	}
	return panelArea{[]panelPage{
		{newWebhookPath, need, "webhook", onPlan(withForms(webhookPage))},
		{webhookPath + "/cambiar", need, "webhook", onPlan(withForms(webhookPage))},
	}, reviewedForms("webhook", []panelForm{
		{path: newWebhookPath, need: need, from: newWebhookPath, members: append([]formMember{wordMember("key")}, members...), handle: editing(editWebhook), done: made},
		{path: one, need: need, from: one, members: members, handle: editing(editWebhook), done: done},
		{path: webhookPath + "/quitar", need: need, from: one, handle: editing(removeWebhook), done: done},
	})}
}

func editWebhook(_ *txn, r *request, tree, fields docTree) (docPlace, error) {
	list, hook := listIn(tree, "webhooks"), r.PathValue("hook")
	i := len(list)
	if hook == "" {
		hook, _ = fields["key"].(string)
		list = append(list, docTree{})
	} else if i = keyed(list, hook); i < 0 {
		return docPlace{}, newError(codeWebhookNotFound)
	}
	one := list[i].(docTree)
	if chosen, some := fields["events"].([]any); some {
		fields["events"] = inOrderOf(listIn(one, "events"), chosen)
	}
	layOver(one, fields)
	tree["webhooks"] = list
	return docPlace{path: "webhooks[" + strconv.Itoa(i) + "]", labels: "webhook", id: hook}, nil
}

// inOrderOf puts the chosen elements that a list has first, in the list's order: a form that changes
// something else leaves the order as it is.
func inOrderOf(list, chosen []any) []any {
	kept := slices.DeleteFunc(slices.Clone(list), func(e any) bool { return !slices.Contains(chosen, e) })
	return append(kept, slices.DeleteFunc(chosen, func(e any) bool { return slices.Contains(kept, e) })...)
}

func removeWebhook(_ *txn, r *request, tree, _ docTree) (docPlace, error) {
	list := listIn(tree, "webhooks")
	i := keyed(list, r.PathValue("hook"))
	if i < 0 {
		return docPlace{}, newError(codeWebhookNotFound)
	}
	tree["webhooks"] = slices.Delete(list, i, i+1)
	return docPlace{}, nil
}

type webhookView struct {
	Hook          webhookDoc
	New, Removing bool
	Stamp         string
}

func (v *webhookView) title(f *pageData) string {
	return f.newOr(v.New, "title.webhook.new", v.Hook.Key)
}

func webhookPage(v *panelRequest) (any, fillFunc) {
	hook := v.r.PathValue("hook")
	view := &webhookView{Hook: webhookDoc{Status: statusActive}, New: hook == ""}
	view.Removing = v.posted != nil && v.route != v.page.path && !view.New
	return view, func(t *txn) (err error) {
		if !view.New {
			found := t.cfg.webhook(hook)
			if found == nil {
				return newError(codeWebhookNotFound)
			}
			view.Hook = *found
		}
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// eventPatterns are all patterns that name events: every type, the groups of types, each type.
var eventPatterns = func() (list []string) {
	list = []string{"*"}
	for _, name := range eventTypes {
		group, _, _ := strings.Cut(name, ".")
		if pattern := group + ".*"; !slices.Contains(list, pattern) {
			list = append(list, pattern)
		}
		list = append(list, name)
	}
	return list
}()

// EventBoxes are boxes for the patterns of the webhook, a row for each group.
func (v *webhookView) EventBoxes(f *pageData) (rows [][]boxView) {
	var items []choiceItem
	for _, p := range eventPatterns {
		text := p
		if p == "*" {
			text = f.T("webhook.events.all")
		} else if group, is := strings.CutSuffix(p, ".*"); is {
			text = f.T("webhook.events.group", group)
		}
		items = append(items, choiceItem{p, text})
	}
	for _, box := range f.Boxes("events", items, v.Hook.Events) {
		if strings.HasSuffix(box.Value, "*") {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], box)
	}
	return rows
}
