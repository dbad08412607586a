package main

import "strings"

// A navigation is which places a member may open, and which one a page is in. Its links are
// the same for all who have the same one: they are rendered once.
type navigation struct {
	lang    string
	open    uint64 // bit n: place n
	current int    // the index of a place; -1: the page is in none
}

func (v *panelRequest) navigation() navigation {
	n := navigation{lang: v.lang.Code, current: -1}
	if v.member == nil || v.member.lacksFactor {
		return n
	}
	for i, place := range v.panel.places {
		if v.opens(place) {
			n.open |= 1 << i
			if v.route == place.path || place.path != "/panel" && strings.HasPrefix(v.route, place.path+"/") {
				n.current = i
			}
		}
	}
	return n
}

// A navGroup is a part of the links; the first one has no name.
type navGroup struct {
	Name  string
	Items []navItem
}

type navItem struct {
	Path, Text string
	Current    bool
}

// groups are the links of a navigation.
func (p *panel) groups(n navigation) (list []navGroup) {
	lang := p.texts.In(n.lang)
	for i, place := range p.places {
		if n.open&(1<<i) == 0 {
			continue
		}
		name := ""
		if place.group != "" {
			name = tr(lang, place.group)
		}
		if of := len(list); of == 0 || list[of-1].Name != name {
			list = append(list, navGroup{Name: name})
		}
		group := &list[len(list)-1]
		group.Items = append(group.Items, navItem{place.path, tr(lang, place.text), i == n.current})
	}
	return list
}
