package main

// The pages and forms of the panel, and its navigation.

// panelAreas are the parts of the panel; what logs out comes last.
func panelAreas() []panelArea {
	return []panelArea{
		figureArea(), tillArea(), ticketArea(), undoArea(), customerArea(), statementArea(), saleArea(), redemptionArea(), rewardArea(),
		programArea(), segmentArea(), memberArea(), handoutArea(), noticeArea(), simulatorArea(), configArea(), versionArea(),
		developmentArea(), keyArea(), keyFormArea(), requestArea(), webhookArea(), webhookEditArea(),
		activityArea(), personArea(), auditArea(), operatorArea(), teamArea(), accountArea(), lockArea(), logInArea(),
	}
}

func panelPages() (all []panelPage) {
	for _, a := range panelAreas() {
		all = append(all, a.pages...)
	}
	return all
}

func panelForms() (all []panelForm) {
	for _, a := range panelAreas() {
		all = append(all, a.forms...)
	}
	return all
}

// panelPlaces are the lines of the navigation, in order.
func panelPlaces() []panelPlace {
	return []panelPlace{
		{path: "/panel", need: "statistics:read", text: "nav.home"},
		{path: "/panel/caja", need: "till", text: "nav.till"},
		{path: "/panel/clientes", need: "customers:read", text: "nav.customers"},
		{path: "/panel/ventas", need: "transactions:read", text: "nav.sales"},
		{path: "/panel/canjes", need: "rewards:read", text: "nav.redemptions"},
		{path: "/panel/estadisticas", need: "statistics:read", text: "nav.statistics"},
		{path: "/panel/programa", need: "loyalty:read", text: "nav.program", group: "nav.group.loyalty"},
		{path: "/panel/recompensas", need: "rewards:read", text: "nav.rewards", group: "nav.group.loyalty"},
		{path: "/panel/segmentos", need: "segments:read", text: "nav.segments", group: "nav.group.loyalty"},
		{path: noticesPath, need: "customers:edit", text: "nav.notices", group: "nav.group.loyalty"},
		{path: "/panel/simulador", need: "loyalty:read", text: "nav.simulator", group: "nav.group.loyalty"},
		{path: "/panel/configuracion", need: "config:write", text: "nav.config", group: "nav.group.loyalty"},
		{path: developmentPath, need: "keys:manage", text: "nav.development", group: "nav.group.control"},
		{path: "/panel/equipo", need: usersManage, text: "nav.team", part: true, group: "nav.group.control"},
		{path: activityPath, need: usersManage, text: "nav.activity", part: true, group: "nav.group.control"},
		{path: auditPath, need: "audit:read", text: "nav.audit", part: true, group: "nav.group.control"},
		{path: operatorPath, need: operates, text: "nav.operator", group: "nav.group.control"},
	}
}

// thePanel is the panel of an API at an address.
func thePanel(a *api, address panelAddress, limits sessionLimits) *panel {
	return newPanel(a, address, limits, panelMap{panelPages(), panelForms(), panelPlaces(), allTexts()})
}
