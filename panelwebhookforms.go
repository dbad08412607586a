package main

import (
	"slices"
	"strconv"
	"strings"
)

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
		{newWebhookPath, need, "webhook", webhookPage},
		{webhookPath + "/cambiar", need, "webhook", webhookPage},
	}, reviewedForms("webhook", []panelForm{
		{path: newWebhookPath, need: need, from: newWebhookPath, members: append([]formMember{wordMember("key")}, members...), handle: editing(editWebhook), done: made},
		{path: one, need: need, from: one, members: members, handle: editing(editWebhook), done: done},
		{path: webhookPath + "/quitar", need: need, from: one, handle: editing(removeWebhook), done: done},
	})}
}

// editWebhook lays the form of a webhook over a document: one that is there, or a new one.
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

// inOrderOf puts those of the chosen first that a list has, in its order: who changes something
// else does not change that.
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

// A webhookView is the form of a webhook.
type webhookView struct {
	Hook          webhookDoc
	New, Removing bool
	Stamp         string
}

func (v *webhookView) title(f *pageData) string {
	if v.New {
		return f.T("title.webhook.new")
	}
	return v.Hook.Key
}

func webhookPage(v *panelRequest) (any, fillFunc) {
	if !v.planHasAPI() {
		return redirection{developmentPath}, nil
	}
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
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
