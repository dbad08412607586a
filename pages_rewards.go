package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Rewards: what points can be spent on, and the form of one; the redemptions of them.

func rewardArea() panelArea {
	members := []formMember{
		wordMember("name"), wordMember("description"), wordMember("imageUrl"), wordMember("program"), wordMember("status"), figureMember("pointsCost"),
		figureMember("stock"), figureMember("limitPerCustomer"), boxesMember("tiers"), boxesMember("segments"), wordMember("validFrom"), wordMember("validTo"),
		wordMember("fulfilment"), figureMember("validDays"), {name: "autoIssue", kind: checkMember},
		partMember("effect", wordMember("type"), figureMember("amount"), figureMember("percent"), wordMember("sku")),
	}
	done := func(*panelRequest, string) string { return "/panel/recompensas?hecho=1" }
	return panelArea{[]panelPage{
		{"/panel/recompensas", "rewards:read", "rewards", rewardsPage},
		{"/panel/recompensas/nueva", "config:write", "reward", withForms(rewardPage)},
		{"/panel/recompensas/{rewardId}", "config:write", "reward", withForms(rewardPage)},
	}, reviewedForms("reward", []panelForm{
		{path: "/panel/recompensas/nueva", from: "/panel/recompensas/nueva", members: members, handle: editing(editReward), done: done},
		{path: "/panel/recompensas/{rewardId}", from: "/panel/recompensas/{rewardId}", members: members, handle: editing(editReward), done: done},
	})}
}

func editReward(t *txn, r *request, tree, fields docTree) (docPlace, error) {
	list := listIn(tree, "rewards")
	i := len(list)
	if r.PathValue("rewardId") == "" {
		name, _ := fields["name"].(string)
		list = append(list, docTree{"key": keyFor(name, list), "program": t.cfg.defaultProgram().Key})
	} else {
		found, err := t.rewards.get(r.pathID("rewardId"))
		if err != nil {
			return docPlace{}, err
		}
		i = keyed(list, found.Key)
	}
	layOver(list[i].(docTree), fields)
	tree["rewards"] = list
	return docPlace{path: "rewards[" + strconv.Itoa(i) + "]", labels: "reward"}, nil
}

type rewardsView struct {
	Rows     []rewardRow
	Many     bool // programs
	Done     bool
	Archived int
}

type rewardRow struct {
	rewardShape
	Currency currencyName
	Program  string
	Redeemed uint64
	Low      bool // few are left
}

const fewLeft = 10

func rewardsPage(v *panelRequest) (any, fillFunc) {
	view := &rewardsView{Done: v.param("hecho") != ""}
	all := v.ask(listRewards, pair{"limit", manyRewards})
	return view, func(t *txn) error {
		found, err := resultOf[listShape[rewardShape]](t, all)
		if err != nil {
			return err
		}
		view.Many = len(t.cfg.Programs) > 1
		for _, r := range found.Data {
			p, err := t.program(r.LoyaltyProgramID)
			if err != nil {
				return err
			}
			row := rewardRow{rewardShape: r, Currency: p.Currency, Program: p.Name, Low: r.Stock != nil && *r.Stock < fewLeft}
			if row.Redeemed, _, err = getUint(t.Tx, t.rewards.countKey(r.ID)); err != nil {
				return err
			}
			if view.Rows = append(view.Rows, row); r.Status != statusActive {
				view.Archived++
			}
		}
		slices.SortStableFunc(view.Rows, func(a, b rewardRow) int { return cmp.Compare(a.Status, b.Status) }) // Active first
		return nil
	}
}

type rewardView struct {
	Reward   rewardDoc
	Effect   effectDoc
	ID       string // "" of a new one
	Stamp    string
	Left     *int
	Redeemed uint64
	Programs []choiceItem
	Tiers    []choiceItem
	Segments []choiceItem
}

func (v *rewardView) title(f *pageData) string {
	return f.newOr(v.ID == "", "title.reward.new", v.Reward.Name)
}

func rewardPage(v *panelRequest) (any, fillFunc) {
	view := &rewardView{ID: v.r.PathValue("rewardId")}
	return view, func(t *txn) (err error) {
		view.Reward = rewardDoc{Status: statusActive, Fulfilment: fulfilImmediate, Program: t.cfg.defaultProgram().Key}
		if view.ID != "" {
			r, err := t.rewards.get(pathIDOf(v.r, "rewardId"))
			if err != nil {
				return err
			}
			view.Reward = r.rewardDoc
			if view.Left, err = t.rewards.stock(r); err != nil {
				return err
			}
			if view.Redeemed, _, err = getUint(t.Tx, t.rewards.countKey(r.ID)); err != nil {
				return err
			}
		}
		if view.Reward.Effect != nil {
			view.Effect = *view.Reward.Effect
		}
		for _, p := range t.cfg.Programs {
			view.Programs = append(view.Programs, choiceItem{p.Key, p.Name})
			for _, tier := range p.Tiers {
				if item := (choiceItem{tier.Name, tier.Name}); !slices.Contains(view.Tiers, item) {
					view.Tiers = append(view.Tiers, item)
				}
			}
		}
		view.Segments = segmentChoices(t.cfg)
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// segmentChoices are the segments that rules and rewards can name.
func segmentChoices(cfg *config) (items []choiceItem) {
	for _, s := range cfg.bySegmentPriority() {
		items = append(items, choiceItem{s.Key, s.Name})
	}
	return items
}

// Boxes are boxes for the items. Checked are the ones that were sent, or else the given values.
func (f *pageData) Boxes(name string, items []choiceItem, values []string) (boxes []boxView) {
	for i, item := range items {
		n := name + "[" + strconv.Itoa(i) + "]"
		boxes = append(boxes, boxView{ID: controlID(n), Name: n, Value: item.Value, Label: item.Text, Checked: f.checked(n, slices.Contains(values, item.Value))})
	}
	return boxes
}

func (f prose) Times(n uint64) string { return f.Counted("rewards.times", f.format.Count(n)) }

// LeftWords says how many are left.
func (v *rewardView) LeftWords(f *pageData) string {
	if v.Left == nil {
		return f.T("rewards.unlimited")
	}
	return f.Counted("rewards.leave", intText(v.Left))
}

// Redemptions: the list, and one of them.

func redemptionArea() panelArea {
	const one = "/panel/canjes/{redemptionId}"
	back := func(v *panelRequest, _ string) string {
		return afterDone("/panel/canjes/" + v.r.PathValue("redemptionId"))
	}
	return panelArea{[]panelPage{
		{"/panel/canjes", "rewards:read", "redemptions", redemptionsPage},
		{"/panel/canjes/{redemptionId}", "rewards:read", "redemption", withForms(redemptionPage)},
	}, []panelForm{
		{path: one + "/uso", need: "rewards:write", from: one, members: []formMember{{name: "code"}}, handle: ofPath(useRedemption), action: "redemption.used", done: back},
		{path: one + "/cancelar", need: "redemptions:cancel", from: one, guard: ownRedemption, handle: ofPath(cancelRedemption), done: back},
	}}
}

type redemptionsView struct {
	Code, Status, From, To string
	Rows                   []redemptionRow
	Pager                  pagerView
	Total                  uint64
	Search                 bool // only by code
}

type redemptionRow struct {
	redemptionShape
	Customer string
}

// redemptionsPage lists the redemptions. Who may not see all customers finds one by its code.
func redemptionsPage(v *panelRequest) (any, fillFunc) {
	view := &redemptionsView{Code: strings.ToUpper(trimBlanks(v.param("code"))), Status: v.param("status"), From: v.param("from"), To: v.param("to"), Search: v.member.mayAll("customers:read") != nil}
	all := v.ask(listRedemptions, append([]pair{{"code", view.Code}}, v.params("status", "from", "to", "page")...)...)
	return view, func(t *txn) error {
		if view.Search && view.Code == "" {
			return nil
		}
		found, err := resultOf[listShape[redemptionShape]](t, all)
		if err != nil {
			return err
		}
		for _, x := range found.Data {
			row := redemptionRow{redemptionShape: x}
			if row.Customer, err = customerName(t, x.CustomerID); err != nil {
				return err
			}
			view.Rows = append(view.Rows, row)
		}
		view.Pager, view.Total = pager(v, found.Meta), found.Meta.Total
		return nil
	}
}

// customerName is the name of a customer, or of the one that it became part of.
func customerName(t *txn, cust id) (string, error) {
	c, err := t.merges.owner(cust)
	if err != nil {
		return "", err
	}
	return c.name(), nil
}

type redemptionView struct {
	Redemption redemptionShape
	Customer   string
	Currency   currencyName
	Fresh      bool     // the form that led here has just done it
	Use        bool     // the member may use it now
	Cancel     bool     // or cancel it
	Request    *undoRow // to do so; nil: there is none
}

func redemptionPage(v *panelRequest) (any, fillFunc) {
	view := &redemptionView{}
	one := v.ask(getRedemption)
	return view, func(t *txn) (err error) {
		if view.Redemption, err = resultOf[redemptionShape](t, one); err != nil {
			return err
		}
		x, err := t.rewards.redemption(view.Redemption.ID)
		if err != nil {
			return err
		}
		view.Currency = t.cfg.programNumber(x.Program).Currency
		if view.Customer, err = customerName(t, x.Customer); err != nil {
			return err
		}
		view.Fresh = v.justDone(view.Redemption.lastAt())
		view.Use = view.Redemption.Status == redemptionIssued && v.may("rewards:write")
		if view.Request, err = undoRowOf(t, v.member, x.ID); err != nil {
			return err
		}
		cancellable, err := t.rewards.cancellable(x)
		if err != nil {
			return err
		}
		view.Cancel = cancellable && v.may("redemptions:cancel") && v.guarded(t, "redemptions:cancel", ownRedemption) == nil
		return nil
	}
}

// EffectWords say what a till takes off.
func (w *redemptionView) EffectWords(f *pageData) string {
	e := w.Redemption.Effect
	switch {
	case e == nil:
		return f.T("none")
	case e.Type == effectAmount:
		return f.MoneyWithCode(e.Amount)
	case e.Type == effectPercent:
		return f.Number(e.Percent) + "%"
	}
	return e.SKU
}

// Tag is the class of the redemption's status.
func (x redemptionShape) Tag() string {
	switch x.Status {
	case redemptionIssued:
		return "tag good"
	case redemptionCancelled, redemptionExpired:
		return "tag warn"
	}
	return "tag"
}
