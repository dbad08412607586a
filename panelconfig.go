package main

import (
	"slices"
	"strconv"
	"strings"
)

// The configuration: what the organization is called, how it sells, and the whole document.

func configPages() []panelPage {
	return []panelPage{
		{"/panel/configuracion", "config:write", "config", configPage},
		{"/panel/configuracion/documento", "config:write", "document", documentPage},
	}
}

func configForms() []panelForm {
	organization := []formMember{
		wordMember("name"),
		partMember("plan", wordMember("name")),
		{name: "apiAccess", kind: madeMember, make: checkedPlan},
		partMember("profile", wordMember("country"), wordMember("industry"), wordMember("logoUrl"), wordMember("primaryColor")),
		partMember("settings", wordMember("timezone"), wordMember("currency"), wordMember("language"), figureMember("maxLateDays"), wordMember("externalIds"), figureMember("amountDecimals"),
			partMember("notices", wordMember("expiring"), wordMember("birthday"), wordMember("almost"))),
		{name: "cashierReturns", kind: checkMember},
	}
	return reviewedForms("organization", []panelForm{
		{path: "/panel/configuracion", from: "/panel/configuracion", members: organization, handle: editing(editOrganization),
			done: func(*panelRequest, string) string { return "/panel/configuracion?hecho=1" }},
		{path: "/panel/configuracion/documento", from: "/panel/configuracion/documento", most: mostDocument, members: []formMember{wordMember("document")},
			handle: documentAction(postedDocument), done: func(*panelRequest, string) string { return "/panel/configuracion/documento?hecho=1" }},
	})
}

// checkedPlan is whether the plan's box is checked. Only an operator's form has it: in others it
// is left out, so that the plan stays.
func checkedPlan(v *panelRequest, name string) string {
	if value, _ := v.posted.get(name); value != "" || v.may(operates) {
		return strconv.FormatBool(value != "")
	}
	return ""
}

// editOrganization lays the form of the organization over a document.
func editOrganization(_ *txn, _ *request, tree, fields docTree) (docPlace, error) {
	for part, flags := range map[string][]string{"plan": {"apiAccess"}, "settings": {"cashierReturns"}} {
		under, _ := fields[part].(docTree)
		if under == nil {
			under = docTree{}
		}
		for _, name := range flags {
			if value, sent := fields[name]; sent {
				under[name] = value
				delete(fields, name)
			}
		}
		fields[part] = under
	}
	layOver(tree["organization"].(docTree), fields)
	return docPlace{path: "organization", labels: "organization"}, nil
}

// postedDocument is the document that was posted as it is.
func postedDocument(_ *txn, _ *request, fields docTree) ([]byte, docPlace, error) {
	text, _ := fields["document"].(string)
	return []byte(strings.TrimPrefix(text, markUTF8)), docPlace{}, nil // editors put one before a file's text
}

// A configView is the form of the organization.
type configView struct {
	Organization organization
	Stamp        string
	Locked       bool // there are customers: the time zone stays
	Operates     bool // the member may change the plan
	Late         string
	Notices      *noticesDoc
	Pays         bool // points of a program pay, or there is a setting of what they do
	Done         bool
}

func configPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &configView{Notices: new(noticesDoc), Done: v.param("hecho") != "", Operates: v.may(operates)}
	return view, func(t *txn) (err error) {
		view.Organization, view.Late = t.cfg.Organization, strconv.Itoa(t.cfg.maxLateDays())
		if n := t.cfg.Organization.Settings.Notices; n != nil {
			view.Notices = n
		}
		view.Pays = view.Organization.Settings.AmountDecimals != nil || slices.ContainsFunc(t.cfg.Programs, func(p *program) bool { return p.Payment != nil })
		if view.Locked, err = hasCustomers(t, t.org); err == nil {
			view.Stamp, err = stampOf(t.cfg)
		}
		return err
	}
}

// A documentView is the whole document as text.
type documentView struct {
	Text    string
	Version uint64 // that the text is of; 0: the current one, or what was typed
	Stamp   string
	Faults  []documentLine
	Done    bool
}

// A documentLine is a fault of the document, with the line that has it.
type documentLine struct {
	Number     uint64
	Text, Line string
}

func documentPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &documentView{Done: v.param("hecho") != ""}
	return view, func(t *txn) error {
		cfg := t.cfg
		number, _ := strconv.ParseUint(v.param(versionParam), 10, 64)
		kept, err := configAt(t, number)
		if err != nil {
			return err
		}
		if kept != nil && kept != cfg {
			cfg, view.Version = kept, number
		}
		if view.Text, err = documentText(cfg); err != nil {
			return err
		}
		if text, sent := v.posted.get("document"); sent {
			view.Text = text
		}
		lines := strings.Split(view.Text, "\n")
		for _, e := range v.faults {
			if n, is := e.context["line"].(int); is {
				view.Faults = append(view.Faults, documentLine{uint64(n), documentFaultText(v.lang, e), strings.TrimSpace(lines[min(n, len(lines))-1])})
			}
		}
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// LanguageChoice is the control of the organization's language.
func (f *pageData) LanguageChoice(value string) control {
	items := []choiceItem{{"es", f.T("word.es")}, {"en", f.T("word.en")}}
	if value != "es" && value != "en" { // a language of the API's, as es-MX
		items = append(items, choiceItem{value, value})
	}
	return f.Select("settings.language", "organization.settings.language", value, items)
}

var configTexts = panelTexts{
	"nav.config":                             {"Configuración", "Settings"},
	"title.config":                           {"Configuración", "Settings"},
	"title.document":                         {"Documento", "Document"},
	"config.about":                           {"Lo que vale para toda la organización. Antes de aplicar un cambio se ve qué cambia.", "What holds for the whole organization. You see what changes before it is applied."},
	"config.brand":                           {"Marca", "Brand"},
	"config.sales":                           {"Ventas", "Sales"},
	"config.panel":                           {"Panel", "Dashboard"},
	"config.plan":                            {"Plan", "Plan"},
	"config.document":                        {"Ver todo como documento", "See all of it as a document"},
	"config.locked":                          {"No se puede cambiar: ya hay clientes, y los días de las estadísticas dependen de ella.", "It cannot be changed: there are customers already, and the days of statistics depend on it."},
	"document.about":                         {"Toda la configuración, tal como la toma y la da sello en la línea de comandos. Lo que tiene la misma key sigue siendo lo mismo.", "The whole configuration, as sello takes and gives it on the command line. What has the same key stays the same thing."},
	"document.text":                          {"Documento (JSON)", "Document (JSON)"},
	"document.line":                          {"Línea %s", "Line %s"},
	"document.faults":                        {"Lo que hay que corregir", "What has to be mended"},
	"review":                                 {"Revisar", "Review"},
	"review.title":                           {"Esto va a cambiar", "This is going to change"},
	"review.none":                            {"No cambia nada: la configuración ya es así.", "Nothing changes: the configuration is like this already."},
	"review.warnings":                        {"Conviene saberlo", "Good to know"},
	"review.apply":                           {"Aplicar", "Apply"},
	"review.conflict":                        {"Lo guardado y lo tuyo", "What is stored, and yours"},
	"review.conflict.about":                  {"A la izquierda lo que está guardado ahora, a la derecha lo que tú enviaste. No se ha perdido nada: corrige lo que haga falta y revisa otra vez.", "On the left what is stored now, on the right what you sent. Nothing is lost: mend what you need to and review again."},
	"review.applied":                         {"Aplicado", "Applied"},
	"review.kind.added":                      {"nuevo", "new"},
	"review.kind.changed":                    {"cambia", "changed"},
	"review.kind.removed":                    {"se quita", "removed"},
	"review.from":                            {"antes", "before"},
	"review.to":                              {"después", "after"},
	"yes":                                    {"sí", "yes"},
	"no":                                     {"no", "no"},
	"error.configuration_changed":            {"Otra persona cambió la configuración mientras editabas. Lo tuyo no se ha aplicado; abajo se comparan las dos.", "Somebody else changed the configuration while you were editing. Yours was not applied; both are compared below."},
	"organization.name":                      {"Nombre", "Name"},
	"plan.with":                              {"con acceso a la API", "with API access"},
	"plan.without":                           {"sin acceso a la API", "without API access"},
	"plan.alone":                             {"El plan lo cambia quien opera el servidor.", "Whoever runs the server changes the plan."},
	"error.plan_alone":                       {"El plan solo lo cambia quien opera el servidor", "Only who runs the server changes the plan"},
	"organization.plan.name":                 {"Plan", "Plan"},
	"organization.apiAccess":                 {"Acceso a la API", "API access"},
	"organization.apiAccess.hint":            {"Sin él ninguna clave sirve", "Without it no key works"},
	"organization.profile.country":           {"País", "Country"},
	"organization.profile.country.hint":      {"Dos letras, como MX. Por él se leen los teléfonos y se escriben los números", "Two letters, as MX. Phones are read and numbers are written by it"},
	"organization.profile.industry":          {"Giro", "Industry"},
	"organization.profile.logoUrl":           {"Dirección del logotipo", "Address of the logo"},
	"organization.profile.primaryColor":      {"Color", "Colour"},
	"organization.profile.primaryColor.hint": {"Como #5B3A29. Es el color de este panel", "As #5B3A29. It is the colour of this dashboard"},
	"organization.settings.timezone":         {"Zona horaria", "Time zone"},
	"organization.settings.timezone.hint":    {"Como America/Mexico_City", "As America/Mexico_City"},
	"organization.settings.currency":         {"Moneda", "Currency"},
	"organization.settings.currency.hint":    {"Tres letras, como MXN", "Three letters, as MXN"},
	"organization.settings.language":         {"Idioma", "Language"},
	"organization.settings.maxLateDays":      {"Días que puede llegar tarde una venta", "Days that a sale may come late"},
	"organization.settings.externalIds":      {"Números de ticket", "Receipt numbers"},
	"organization.settings.amountDecimals":   {"Decimales de lo que pagan los puntos; en blanco, 2", "Decimals of what points pay; blank for 2"},
	"organization.cashierReturns":            {"La caja puede devolver", "Cashiers may return"},
	"organization.cashierReturns.hint":       {"Sus propias ventas de hoy", "Their own sales of today"},
	"word.Free":                              {"Se pueden repetir", "May come again"},
	"word.Unique":                            {"Uno por venta", "One for each sale"},
	"word.Tier":                              {"Llegar a un nivel", "Reaching a tier"},
	"word.":                                  {"Nada", "Nothing"},
	"word.es":                                {"Español", "Spanish"},
	"word.en":                                {"Inglés", "English"},
	"doc.organization":                       {"Organización", "Organization"},
	"doc.programs":                           {"Programa", "Program"},
	"doc.rewards":                            {"Recompensa", "Reward"},
	"doc.segments":                           {"Segmento", "Segment"},
	"doc.webhooks":                           {"Webhook", "Webhook"},
	"doc.rules":                              {"Regla", "Rule"},
	"doc.tiers":                              {"Nivel", "Tier"},
	"doc.name":                               {"Nombre", "Name"},
	"doc.key":                                {"Clave", "Key"},
	"doc.status":                             {"Estado", "Status"},
	"doc.pointsCost":                         {"Costo en puntos", "Cost in points"},
	"doc.stock":                              {"Existencias en total", "Stock in all"},
	"doc.limitPerCustomer":                   {"Veces por cliente", "Times for each customer"},
	"doc.multiplier":                         {"Multiplicador", "Multiplier"},
	"doc.threshold":                          {"Desde", "From"},
	"doc.description":                        {"Descripción", "Description"},
	"doc.plan.name":                          {"Plan", "Plan"},
	"doc.plan.apiAccess":                     {"Acceso a la API", "API access"},
	"doc.profile.country":                    {"País", "Country"},
	"doc.profile.industry":                   {"Giro", "Industry"},
	"doc.profile.logoUrl":                    {"Dirección del logotipo", "Address of the logo"},
	"doc.profile.primaryColor":               {"Color", "Colour"},
	"doc.settings.timezone":                  {"Zona horaria", "Time zone"},
	"doc.settings.currency":                  {"Moneda", "Currency"},
	"doc.settings.language":                  {"Idioma", "Language"},
	"doc.settings.maxLateDays":               {"Días que puede llegar tarde una venta", "Days that a sale may come late"},
	"doc.settings.externalIds":               {"Números de ticket", "Receipt numbers"},
	"config.notices":                         {"Avisos", "Notices"},
	"config.notices.about":                   {"Los textos de Avisos. En blanco, el de siempre. {nombre}, {negocio}, {saldo} y {moneda} se llenan solos; en los puntos que vencen también {puntos} y {fecha}, y en la compra que falta {meta}.", "The texts of Notices. Blank for the usual one. {nombre}, {negocio}, {saldo} and {moneda} are filled in; for points that expire also {puntos} and {fecha}, and for the missing purchase {meta}."},
	"organization.settings.notices.expiring": {"Puntos que vencen", "Points that expire"},
	"organization.settings.notices.birthday": {"Cumpleaños", "Birthdays"},
	"organization.settings.notices.almost":   {"Falta una compra", "One purchase away"},
	"doc.settings.notices.expiring":          {"Aviso de puntos que vencen", "Notice of points that expire"},
	"doc.settings.notices.birthday":          {"Aviso de cumpleaños", "Notice on birthdays"},
	"doc.settings.notices.almost":            {"Aviso de que falta una compra", "Notice that one purchase is missing"},
	"doc.settings.cashierReturns":            {"La caja puede devolver", "Cashiers may return"},
	"doc.settings.secondFactor":              {"Necesita segundo factor", "Needs a second factor"},
	"doc.settings.amountDecimals":            {"Decimales de los importes que pagan puntos", "Decimals of amounts that points pay"},
	"doc.payment.points":                     {"Puntos que valen", "Points worth"},
	"doc.payment.amount":                     {"Lo que valen", "What they are worth"},
	"doc.payment.minPoints":                  {"Puntos para pagar, al menos", "Points for paying, at least"},
	"doc.payment.maxPercent":                 {"Parte de la venta que pagan, a lo más", "Share of a sale that they pay, at most"},
	"doc.payment.step":                       {"Puntos para pagar, de tantos en tantos", "Points for paying, in steps of"},
	"doc.payment.earnOn":                     {"Pagada con puntos, las reglas cuentan", "Where points pay, rules count"},
	"word.Paid":                              {"Lo que se paga en dinero", "What is paid with money"},
	"word.Total":                             {"El total", "The total"},
	"doc.per.amount":                         {"Por cada", "For each"},
	"doc.per.points":                         {"Puntos", "Points"},
	"doc.perItem":                            {"Puntos por artículo", "Points for each item"},
	"doc.points":                             {"Puntos", "Points"},
	"doc.minAmount":                          {"Desde un importe de", "From an amount of"},
	"doc.days":                               {"Día", "Day"},
	"doc.hours.from":                         {"Desde la hora", "From the hour"},
	"doc.hours.to":                           {"Hasta la hora", "To the hour"},
	"doc.from":                               {"Desde", "From"},
	"doc.until":                              {"Hasta", "Until"},
	"doc.skus":                               {"Artículo", "Item"},
	"doc.firstPurchase":                      {"Solo la primera compra", "Only the first purchase"},
	"doc.maxPerCustomerPerDay":               {"Veces al día por cliente", "Times a day for each customer"},
	"doc.reward":                             {"Recompensa que da", "Reward that it gives"},
	"doc.autoIssue":                          {"Se canjea sola", "Redeems itself"},
	"doc.excludeSkus":                        {"Artículo que no cuenta", "Item that does not count"},
	"doc.payment.excludeSkus":                {"Artículo que los puntos no pagan", "Item that points do not pay for"},
	"doc.minQuantity":                        {"Al menos tantos artículos", "At least so many items"},
	"doc.labels":                             {"Etiqueta", "Label"},
	"doc.maxPerCustomer":                     {"Veces en total por cliente", "Times in all for each customer"},
	"doc.every":                              {"Una de cada tantas compras", "One purchase in so many"},
	"doc.maxPoints":                          {"Puntos por compra, a lo más", "Points for a purchase, at most"},
	"doc.budget":                             {"Presupuesto en puntos", "Budget of points"},
	"doc.category":                           {"Se anotan como", "Noted as"},
	"doc.pendingDays":                        {"Días pendientes", "Days pending"},
	"doc.expiresInDays":                      {"Vencen a los días", "Expire after days"},
	"doc.currency":                           {"Cómo se llaman los puntos", "What points are called"},
	"doc.currency.one":                       {"Una unidad se llama", "One of them is called"},
	"doc.currency.many":                      {"Cómo se llaman los puntos", "What points are called"},
	"doc.pointsDecimals":                     {"Decimales", "Decimals"},
	"doc.rounding":                           {"Redondeo", "Rounding"},
	"doc.returns":                            {"Devoluciones", "Returns"},
	"doc.negativeBalance":                    {"Si ya no hay puntos", "If points are spent"},
	"doc.expiry.days":                        {"Vencen a los días", "Expire after days"},
	"doc.expiry.months":                      {"Vencen a los meses", "Expire after months"},
	"doc.expiry.endOf":                       {"Hasta fin de mes", "To the end of the month"},
	"doc.expiry.inactiveMonths":              {"Vencen sin comprar ni canjear (meses)", "Expire without purchase or redemption (months)"},
	"doc.tierBasis.metric":                   {"Los niveles miden", "Tiers measure"},
	"doc.tierBasis.window":                   {"Los niveles cuentan", "Tiers count"},
	"doc.tierBasis.months":                   {"Meses que cuentan", "Months that count"},
	"doc.priority":                           {"Prioridad", "Priority"},
	"doc.isActive":                           {"Activo", "Active"},
	"doc.fulfilment":                         {"Entrega", "Fulfilment"},
	"doc.validDays":                          {"Días para usarlo", "Days to use it"},
	"doc.validFrom":                          {"Vale desde", "Valid from"},
	"doc.validTo":                            {"Vale hasta", "Valid until"},
	"doc.effect.type":                        {"Qué descuenta", "What it takes off"},
	"doc.effect.amount":                      {"Importe que descuenta", "Amount it takes off"},
	"doc.effect.percent":                     {"Porcentaje que descuenta", "Percentage it takes off"},
	"doc.effect.sku":                         {"Artículo que da", "Item it gives"},
	"doc.program":                            {"Programa", "Program"},
	"doc.on":                                 {"Cuándo", "When"},
	"doc.order":                              {"Orden", "Order"},
	"doc.imageUrl":                           {"Dirección de la imagen", "Address of the image"},
	"doc.default":                            {"El de los clientes nuevos", "That of new customers"},
	"doc.slug":                               {"Identificador", "Identifier"},
	"doc.url":                                {"Dirección", "Address"},
	"doc.events":                             {"Evento", "Event"},
	"doc.rule":                               {"Condición", "Condition"},
	"doc.all":                                {"Se cumplen todas", "All of them"},
	"doc.any":                                {"Se cumple alguna", "Any of them"},
	"doc.not":                                {"No se cumple", "Not"},
	"doc.field":                              {"Dato", "Field"},
	"doc.op":                                 {"Es", "Is"},
	"doc.value":                              {"Valor", "Value"},
	"doc.dropped":                            {"Se perdió", "Lost"},
	"word.Default":                           {"Solo de sus clientes", "Of its own customers alone"},
	"word.All":                               {"De todos los clientes", "Of all customers"},
	"word.Purchase":                          {"Con una compra", "For a purchase"},
	"doc.join":                               {"De quién son los puntos", "Whose points it holds"},
}
