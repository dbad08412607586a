package main

import "slices"

// The pages and forms of the panel, and its navigation.

func panelPages() []panelPage {
	return slices.Concat([]panelPage{{"/panel", anyone, "", homePage}}, tillPages(), customerPages(), salePages())
}

// homePage leads to what the member is here for.
func homePage(v *visit) (any, fillFunc) {
	for _, place := range v.panel.places {
		if place.path != "/panel" && v.sees(place.need, place.part) {
			return redirection{place.path}, nil
		}
	}
	return redirection{"/panel/cuenta"}, nil
}

func panelForms() []panelForm { return slices.Concat(tillForms(), customerForms(), saleForms()) }

// panelPlaces are the lines of the navigation, in order.
func panelPlaces() []panelPlace {
	return []panelPlace{
		{path: "/panel/caja", need: "till", text: "nav.till"},
		{path: "/panel/clientes", need: "customers:read", text: "nav.customers"},
		{path: "/panel/ventas", need: "transactions:read", text: "nav.sales"},
	}
}

// thePanel is the panel of an API at an address.
func thePanel(a *api, address panelAddress, ends sessionEnds) *panel {
	return newPanel(a, address, ends, panelMap{panelPages(), panelForms(), panelPlaces()})
}
