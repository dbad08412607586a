package main

import (
	"slices"
)

// The pages and forms of the panel, and its navigation.

func panelPages() []panelPage {
	return slices.Concat(figurePages(), tillPages(), customerPages(), statementPages(), salePages(), redemptionPages(), rewardPages(), programPages(), segmentPages(), memberPages(), noticePages(), handoutPages(), simulatorPages(), configPages(), versionPages(),
		developmentPages(), keyPages(), keyFormPages(), requestPages(), webhookPages(), webhookEditPages(),
		activityPages(), personPages(), auditPages(), operatorPages(),
		teamPages(), accountPages(), lockPages(), logInPages())
}

func panelForms() []panelForm {
	return slices.Concat(figureForms(), tillForms(), undoForms(), customerForms(), saleForms(), redemptionForms(), rewardForms(), programForms(), segmentForms(), memberForms(), handoutForms(), noticeForms(), configForms(), keyForms(), webhookForms(), webhookEditForms(),
		auditForms(), operatorForms(), teamForms(), accountForms(), lockForms(), logInForms()) // to log out comes last
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
