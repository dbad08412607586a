package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/ordered/orderedtest"
	"sello/internal/totp"
)

// A good form of each route of the panel that takes one. What forms do is tested with them:
// the entry in the audit log, that the API does the same, and more.

// A formWorld is a shop with something of each kind for forms to change. The owner knows
// testPassword. {name} in a path or a value stands for one of its names.
type formWorld struct {
	panelShop *panelShop
	names     map[string]string
}

var formSetup = setup{
	program: `"currency":"Lunas","rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}],"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":1000}]`,
	also: `"rewards":[{"key":"espresso","name":"Espresso","program":"club","pointsCost":80},
		{"key":"vale","name":"Vale de $50","program":"club","pointsCost":100,"fulfilment":"Voucher","validDays":30,"effect":{"type":"Amount","amount":50}}],
		"segments":[{"key":"todos","name":"Todos","isActive":true,"rule":{"field":"totalSpent","op":">=","value":0}}],
		"webhooks":[{"key":"crm","url":"http://127.0.0.1:1/x","events":["customer.*"],"status":"Active"}]`,
}

func newFormWorld(t testing.TB) *formWorld {
	w := newFormWorldOn(newPanelShop(t, formSetup))
	w.panelShop.panel.server = &panelServer{plan: new(backupPlan), background: func(func(context.Context)) {}} // tasks begin, and never end
	return w
}

func newFormWorldOn(s *panelShop) *formWorld {
	s.api.engine.cardsAt = cardsBase
	s.api.logins.iterations = 2
	s.api.logins.sources = newLoginLimits(1<<20, 1)
	s.panel.sessionLimits = s.shop.engine.sessionLimits
	s.shop.apply(formSetup.document())
	w := &formWorld{s, map[string]string{"hook": "crm", "userId": s.users[roleCashier].String()}}
	h, err := s.api.logins.hash(s.shop.Context(), testPassword)
	s.shop.ok(err)
	w.owned(func(t *txn, u *user) error {
		u.Password, u.Password.At = h, t.now
		return t.people.saveUser(u)
	})
	ana := must(s.shop, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Ana", LastName: "García", Email: "ana@example.com", Phone: "+525587654321"})
		return c.ID, err
	})
	luz := s.shop.customer("luz")
	bought := func(in newSale) *sale {
		in.Source = sourceAPI
		sold, err := s.shop.sell(in)
		s.shop.ok(err)
		return sold
	}
	bought(newSale{Customer: luz, Total: dec("1200")})
	sold := bought(newSale{Customer: ana, Total: dec("5000"), Items: []item{{SKU: "A", Price: dec("2500"), Quantity: dec("2")}}})
	x, err := s.shop.redeem(ana, "vale")
	s.shop.ok(err)
	k, text := s.shop.newKey(keyRequest{RateLimit: 10_000})
	must(s.shop, func(t *txn) ([]byte, error) { return t.webhooks.newSecret("crm") })
	w.names["token"] = s.shop.invited("sol@example.com", roleCashier)
	open := ask(s.shop, func(t *txn) ([]*listedInvitation, error) { return t.people.invitations() })
	cfg := s.shop.config()
	p := cfg.Programs[0]
	for name, value := range map[string]string{
		"customerId": ana.String(), "luz": luz.String(), "transactionId": sold.ID.String(), "redemptionId": x.ID.String(), "code": x.Code,
		"keyId": k.ID.String(), "key": text, "invitationId": open[0].ID.String(), "productId": cfg.Rewards[0].ID.String(),
		"programId": p.ID.String(), "ruleId": p.ruleID(&p.Rules[0]).String(), "rewardId": cfg.Rewards[0].ID.String(), "segmentId": cfg.Segments[0].ID.String(), "figure": "ventas",
	} {
		w.names[name] = value
	}
	return w
}

// owned changes the owner's user.
func (w *formWorld) owned(fn func(*txn, *user) error) {
	w.panelShop.shop.Helper()
	must(w.panelShop.shop, func(t *txn) (any, error) {
		u, err := userByID(t.Tx, w.panelShop.users[roleOwner])
		if err == nil {
			err = fn(t, u)
		}
		return nil, err
	})
}

func (w *formWorld) filled(text string) string {
	return keptName.ReplaceAllStringFunc(text, func(m string) string {
		if value, ok := w.names[m[1:len(m)-1]]; ok {
			return value
		}
		return m
	})
}

// fields are the fields of a good form, as the page would send them.
func (w *formWorld) fields(g *goodForm) url.Values {
	v := url.Values{}
	for i := 0; i < len(g.post); i += 2 {
		v.Set(g.post[i], w.filled(g.post[i+1]))
	}
	return v
}

// sent sends a form; one that is reviewed first, twice. It returns the fields, too, to send
// them again.
func (w *formWorld) sent(f *panelForm, g *goodForm) (*httptest.ResponseRecorder, url.Values) {
	w.panelShop.shop.Helper()
	if g.prepare != nil {
		g.prepare(w)
	}
	as, path, fields := g.as, w.filled(f.path), w.fields(g)
	switch as {
	case "":
		as = roleOwner
	case "nobody":
		as = ""
	}
	if isReviewed(f) {
		_, fields = w.panelShop.reviewed("/panel/configuracion", path, fields)
	}
	if g.stamped {
		fields.Set(etagField, w.panelShop.stamp(roleOwner, "/panel/configuracion"))
	}
	fields.Set(tokenField, w.panelShop.panel.random())
	answer := w.panelShop.post(as, path, fields)
	if answer.Code != http.StatusSeeOther && answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), `role="alert"`) {
		w.panelShop.shop.Fatalf("POST %s: %d\n%s", f.path, answer.Code, mainOf(answer.Body.String()))
	}
	return answer, fields
}

// isReviewed reports whether a form is done only as it was reviewed.
func isReviewed(f *panelForm) bool { return f.shows != nil && f.proof || changesConfig(f) }

// changesConfig reports whether a form changes the configuration, as it was reviewed.
func changesConfig(f *panelForm) bool {
	return f.prepare != nil && reflect.ValueOf(f.prepare).Pointer() == reflect.ValueOf(reviewFirst).Pointer()
}

// A goodForm is what can be sent to a route, and what comes of it.
type goodForm struct {
	as      role     // "": the owner; "nobody": without a session
	post    []string // names and values by turns
	prepare func(*formWorld)
	stamped bool // it changes the configuration, and is not reviewed

	// silent says why it changes nothing, nor leaves an entry in the audit log; pair, why it
	// leaves two.
	silent, pair string
	logs         bool // what it does is elsewhere: it changes the audit log alone
	later        bool // a task of the server does it, and leaves the entry at its end
	unlogged     bool // it leaves no entry, which would be kept for longer than what it notes
	session      bool // it changes the member's own session alone, and leaves no entry, as using it does

	// What does the same: a request of the API, or a command. Else alone says why there is
	// none. What a form does to the configuration is what its document does.
	api   string
	op    func(*formWorld, *admin) error
	alone string
}

const (
	peopleAlone  = "people are the panel's: the API has none, and commands act on users everywhere"
	noticesAlone = "who wrote to whom is the panel's: clients of the API write by themselves"
	accountAlone = "a member's own: there is nothing of it outside of the panel"
	filesAlone   = "changes nothing but the log: what is read by a key leaves no entry"
	undoAlone    = "what members of the team ask each other: there is nothing of it outside of the panel"
	serverAlone  = "changes nothing but the log: the work is a task of the server"
)

func of(pairs ...string) []string { return pairs }

// goodForms has a form for each route.
var goodForms = map[string]goodForm{
	"/panel/auditoria/exportar":                 {post: of("kind", "All"), logs: true, alone: filesAlone},
	"/panel/estadisticas/csv/{figure}":          {post: of("groupBy", "week"), logs: true, alone: filesAlone},
	"/panel/segmentos/{segmentId}/clientes/csv": {logs: true, alone: filesAlone},
	"/panel/avisos/{customerId}/escrito":        {post: of("que", "mes"), unlogged: true, alone: noticesAlone},
	"/panel/avisos/{customerId}/quitar": {post: of("que", "mes"), unlogged: true, alone: noticesAlone, prepare: func(w *formWorld) {
		cust, _ := parseID(w.names["customerId"])
		must(w.panelShop.shop, func(t *txn) (any, error) {
			return nil, t.customers.markWritten(cust, noticeExpiring, w.panelShop.users[roleOwner], true)
		})
	}},
	"/panel/caja/alta": {post: of("firstName", "Eva", "phoneNumber", "55 1111 2222", "birthDate", "02-29"), api: `POST /customers {"firstName":"Eva","phoneNumber":"55 1111 2222","birthDate":"--02-29"}`},
	"/panel/caja/{customerId}/venta": {post: of("totalAmount", "1,500.50", "externalId", "T-9", "comment", "Con\r\ndos", "items[0].sku", "A", "items[0].price", "10", "items[0].quantity", "2", "items[3].sku", "B", "items[3].price", "1.5", "items[3].quantity", "1"),
		api: `POST /transactions {"customerId":"{customerId}","totalAmount":1500.50,"externalId":"T-9","comment":"Con\ndos","items":[{"sku":"A","price":10,"quantity":2},{"sku":"B","price":1.5,"quantity":1}]}`},
	"/panel/caja/{customerId}/canje":                    {post: of("productId", "{productId}", "expectedPoints", "80"), api: `POST /rewards/redeem {"customerId":"{customerId}","productId":"{productId}","expectedPoints":80}`},
	newTicketPath:                                       {prepare: (*formWorld).haveTickets, post: of("totalAmount", "1,500.50", "externalId", "R-2"), api: `POST /tickets {"totalAmount":1500.50,"externalId":"R-2"}`},
	ticketPath + "/cancelar":                            {prepare: (*formWorld).haveTickets, api: `POST /tickets/cancel {"externalId":"R-1"}`},
	"/panel/caja/{joinCode}/alta":                       {prepare: (*formWorld).haveJoin, pair: "somebody was enrolled and given a card", api: `POST /customers {"joinCode":"{joinCode}"}`},
	"/panel/caja/{customerId}/tarjeta":                  {api: `POST /customers/{customerId}/card {}`},
	"/panel/caja/{customerId}/tarjeta/anular":           {prepare: (*formWorld).haveCard, api: `POST /customers/{customerId}/card/revoke {}`},
	"/panel/caja/{customerId}/canje/{redemptionId}/uso": {post: of("code", "{code}"), api: `POST /redemptions/use {"code":"{code}"}`},
	"/panel/caja/{customerId}/canje/{redemptionId}/venta": {post: of("totalAmount", "150"), pair: "a sale was made and a voucher used",
		alone: "the API's sale and use together"},
	"/panel/caja/{customerId}/canje/{redemptionId}/deshacer": {api: `POST /redemptions/{redemptionId}/cancel`},
	"/panel/caja/{customerId}/venta/{transactionId}/deshacer": {post: of("totalAmount", "5000"),
		api: `POST /transactions {"customerId":"{customerId}","type":"Return","totalAmount":5000,"originalTransactionId":"{transactionId}"}`},
	"/panel/clientes/nuevo": {post: of("firstName", "Eva", "lastName", "Sol", "email", "EVA@example.com", "externalId", "M-7"), api: `POST /customers {"firstName":"Eva","lastName":"Sol","email":"EVA@example.com","externalId":"M-7"}`},
	"/panel/clientes/{customerId}/editar": {post: of("firstName", "Anita", "lastName", "", "email", "ana@example.com", "phoneNumber", "", "birthDate", "1988-12-01", "externalId", "", "status", "Inactive"),
		api: `PATCH /customers/{customerId} {"firstName":"Anita","lastName":null,"email":"ana@example.com","phoneNumber":null,"birthDate":"1988-12-01","externalId":null,"status":"Inactive"}`},
	"/panel/clientes/{customerId}/puntos/dar":                   {post: of("amount", "12.5", "comment", "Por la espera", "expiresAt", "2026-12-31"), api: `POST /points/customers/{customerId}/add {"amount":12.5,"comment":"Por la espera","expiresAt":"2026-12-31"}`},
	"/panel/clientes/{customerId}/puntos/quitar":                {post: of("amount", "12", "comment", "Por error"), api: `POST /points/customers/{customerId}/deduct {"amount":12,"comment":"Por error"}`},
	"/panel/clientes/{customerId}/retenciones/{holdId}/liberar": {prepare: (*formWorld).haveHold, api: `POST /points/holds/{holdId}/release {}`},
	"/panel/clientes/{customerId}/unir":                         {post: of("from", "{luz}"), api: `POST /customers/{customerId}/merge {"from":"{luz}"}`},
	"/panel/clientes/{customerId}/borrar":                       {post: of("confirm", "ERASE"), api: `POST /customers/{customerId}/erase {"confirm":"ERASE"}`},
	"/panel/ventas/{transactionId}/devolucion": {post: of("customerId", "{customerId}", "items[0].sku", "A", "items[0].price", "2500", "items[0].quantity", "1", "comment", "Frío"),
		api: `POST /transactions {"customerId":"{customerId}","type":"Return","totalAmount":2500,"originalTransactionId":"{transactionId}","comment":"Frío","items":[{"sku":"A","price":2500,"quantity":1}]}`},
	"/panel/canjes/{redemptionId}/uso":                     {post: of("code", "{code}"), api: `POST /redemptions/use {"code":"{code}"}`},
	"/panel/caja/{customerId}/venta/{transactionId}/pedir": {prepare: (*formWorld).haveOwn, post: of("reason", "Era de Luz"), alone: undoAlone},
	"/panel/caja/{customerId}/canje/{redemptionId}/pedir":  {prepare: (*formWorld).haveOwn, post: of("reason", "No lo quería"), alone: undoAlone},
	"/panel/ventas/{transactionId}/no-deshacer":            {prepare: (*formWorld).haveAsked, alone: undoAlone},
	"/panel/canjes/{redemptionId}/no-deshacer":             {prepare: (*formWorld).haveAsked, alone: undoAlone},

	"/panel/canjes/{redemptionId}/cancelar": {api: `POST /redemptions/{redemptionId}/cancel`},

	"/panel/recompensas/nueva":                           {post: of("name", "Pan", "pointsCost", "1,200", "fulfilment", "Immediate", "status", "Active")},
	"/panel/recompensas/{rewardId}":                      {post: of("name", "Espresso doble", "pointsCost", "90")},
	"/panel/programa/{programId}":                        {post: of("currency", "Soles", "payment.points", "10", "payment.amount", "1", "payment.earnOn", "Paid", "tiers[0].name", "Cobre", "tiers[0].threshold", "0", "tiers[1].name", "Plata", "tiers[1].threshold", "400")},
	"/panel/programa/{programId}/nueva":                  {post: of("effect", "multiplier", "name", "Martes", "multiplier", "2", "days[1]", "Tuesday")},
	"/panel/programa/{programId}/reglas/{ruleId}":        {post: of("effect", "per", "per.amount", "20", "per.points", "3", "name", "Base")},
	"/panel/programa/{programId}/reglas/{ruleId}/quitar": {},
	"/panel/segmentos/nuevo":                             {post: of("name", "Grandes", "isActive", "1", "join", "all", "rows[0].field", "totalSpent", "rows[0].op", ">=", "rows[0].value", "1,000")},
	"/panel/segmentos/{segmentId}":                       {post: of("priority", "3", "isActive", "1")},
	"/panel/segmentos/{segmentId}/quitar":                {},
	handoutPath:                                          {post: of("amount", "5", "category", "Campaign", "comment", "Aniversario", "expiresAt", "2026-12-31"), later: true, alone: "the API gives points to one customer at a time"},
	"/panel/configuracion":                               {post: of("name", "Café Sol", "apiAccess", "1", "cashierReturns", "1")},
	"/panel/configuracion/documento":                     {post: of("document", strings.Replace(string(formSetup.document()), `"name":"Espresso"`, `"name":"Ristretto"`, 1))},

	keysPath + "/nueva": {post: of("name", "Caja", "access", "some", "scope.points:read", "1", "expires", "date", "expiresOn", "2026-12-31", "dailyLimit", "10,000", "maxPointsPerDay", "500"),
		op: func(_ *formWorld, a *admin) error {
			_, err := a.createKey(context.Background(), keyRequest{Org: "cafe-luna", Name: "Caja", Scopes: []string{"points:read"}, Expires: "2026-12-31", DailyLimit: 10_000, MaxPointsPerDay: decimalOf(500)})
			return err
		}},
	keyPath + "/cambiar": {post: of("name", "Tienda", "access", "all", "expires", "never", "rateLimit", "20", "ipWhitelist", "10.0.0.0/8\r\n192.0.2.7"),
		op: func(w *formWorld, a *admin) error {
			_, err := a.changeKey(context.Background(), keyChange{keyRequest{Org: "cafe-luna", Name: "Tienda", RateLimit: 20, IPWhitelist: []string{"10.0.0.0/8", "192.0.2.7"}}, w.names["keyId"], keyFields})
			return err
		}},
	keyPath + "/renovar": {post: of("overlap", "1h"), pair: "two keys have changed: the new one was made, the earlier one is to end. Each is found by its own id, and both have the request's",
		op: func(w *formWorld, a *admin) error {
			_, err := a.rotateKey(context.Background(), rotateRequest{"cafe-luna", w.names["keyId"], time.Hour})
			return err
		}},
	keyPath + "/revocar": {post: of("name", "test"), op: func(w *formWorld, a *admin) error {
		_, err := a.revokeKey(context.Background(), revokeRequest{"cafe-luna", w.names["keyId"]})
		return err
	}},
	webhookPath + "/secreto": {op: func(_ *formWorld, a *admin) error {
		_, err := a.newWebhookSecret(context.Background(), webhookRequest{Org: "cafe-luna", Hook: "crm"})
		return err
	}},
	webhookPath + "/continuar": {op: func(_ *formWorld, a *admin) error {
		_, err := a.resumeWebhook(context.Background(), webhookRequest{Org: "cafe-luna", Hook: "crm"})
		return err
	}},
	webhookPath + "/repetir": {post: of("from", "1"), op: func(_ *formWorld, a *admin) error {
		_, err := a.replayWebhook(context.Background(), webhookRequest{"cafe-luna", "crm", 1})
		return err
	}},
	webhookPath + "/prueba": {logs: true, op: func(_ *formWorld, a *admin) error {
		_, err := a.testWebhook(context.Background(), webhookRequest{Org: "cafe-luna", Hook: "crm"})
		return err
	}},
	newWebhookPath:                 {post: of("key", "erp", "url", "https://erp.example.com/a?b=1", "events[0]", "*", "status", "Active")},
	webhookPath + "/cambiar":       {post: of("url", "https://crm.example.com/", "events[3]", "customer.updated", "status", "Inactive")},
	webhookPath + "/quitar":        {},
	operatorPath + "/copias":       {prepare: (*formWorld).runServer, alone: serverAlone},
	operatorPath + "/verificacion": {prepare: (*formWorld).runServer, alone: serverAlone},

	"/panel/equipo/segundo-factor": {post: of("secondFactor[3]", "cashier"), stamped: true},

	"/panel/equipo/nuevo":                               {post: of("email", "mar@example.com", "role", "cashier"), alone: peopleAlone},
	"/panel/equipo/invitaciones/{invitationId}/retirar": {alone: peopleAlone},
	"/panel/equipo/{userId}/rol":                        {post: of("role", "manager"), alone: peopleAlone},
	"/panel/equipo/{userId}/limite":                     {post: of("maxPointsPerDay", "50"), alone: peopleAlone},
	"/panel/equipo/{userId}/inhabilitar":                {alone: peopleAlone},
	"/panel/equipo/{userId}/habilitar": {alone: peopleAlone, prepare: func(w *formWorld) {
		w.panelShop.shop.ok(tryBy(w.panelShop.shop, w.panelShop.shop.member(w.panelShop.tokens[roleOwner]), func(t *txn) error {
			return t.people.suspend(w.panelShop.shop.member(w.panelShop.tokens[roleOwner]), w.panelShop.users[roleCashier], true)
		}))
	}},
	"/panel/equipo/{userId}/sesiones": {alone: peopleAlone},
	"/panel/equipo/{userId}/enlace":   {alone: peopleAlone},
	"/panel/equipo/{userId}/quitar":   {alone: peopleAlone},

	"/panel/cuenta":                        {post: of("name", "Ana G.", "language", "en", "theme", "dark"), alone: accountAlone},
	"/panel/cuenta/clave":                  {post: of("old", testPassword, "password", "otro tren azul 9"), alone: accountAlone},
	"/panel/cuenta/segundo-factor":         {post: of("factorCode", offeredHere), prepare: func(*formWorld) {}, alone: accountAlone},
	"/panel/cuenta/segundo-factor/codigos": {post: of("factorCode", "{recovery}"), prepare: (*formWorld).haveFactor, alone: accountAlone},
	"/panel/cuenta/segundo-factor/quitar":  {post: of("old", testPassword, "dropCode", "{recovery}"), prepare: (*formWorld).haveFactor, alone: accountAlone},
	"/panel/cuenta/sesiones/terminar": {alone: accountAlone, prepare: func(w *formWorld) {
		must(w.panelShop.shop, func(t *txn) (string, error) {
			return t.people.startSession(w.panelShop.users[roleOwner], sessionFull, &arrival{})
		})
	}},

	"/panel/entrar": {as: "nobody", post: of("email", "owner@example.com", "password", testPassword), alone: accountAlone},
	"/panel/entrar/codigo": {as: "half", post: of("factorCode", "{recovery}"), alone: accountAlone, prepare: func(w *formWorld) {
		w.haveFactor()
		w.panelShop.tokens["half"] = must(w.panelShop.shop, func(t *txn) (string, error) {
			return t.people.startSession(w.panelShop.users[roleOwner], sessionHalf, &arrival{})
		})
	}},
	"/panel/invitacion/{token}": {as: "nobody", post: of("name", "Sol", "password", testPassword), alone: accountAlone},
	"/panel/confirmar":          {post: of("password", testPassword), alone: accountAlone, prepare: func(w *formWorld) { w.panelShop.shop.pass(time.Second) }},
	"/panel/organizacion": {post: of("organization", "tienda"), alone: accountAlone, prepare: func(w *formWorld) {
		w.panelShop.shop.secondShop()
		w.panelShop.shop.in(2, func() {
			must(w.panelShop.shop, func(t *txn) (any, error) {
				return nil, t.people.addMember(w.panelShop.users[roleOwner], &membership{Role: roleOwner})
			})
		})
	}},
	"/panel/salir": {alone: accountAlone},

	pinPath:             {post: of("pin", testPIN, "pinAgain", testPIN), alone: accountAlone},
	pinPath + "/quitar": {post: of("dropPin", testPIN), prepare: (*formWorld).havePIN, alone: accountAlone},
	lockPath:            {prepare: (*formWorld).havePIN, session: true, alone: accountAlone},
	unlockPath: {post: of("pin", testPIN), session: true, alone: accountAlone, prepare: func(w *formWorld) {
		w.havePIN()
		w.beLocked()
	}},
}

// factorSecret is a secret of a second factor, in base 32.
const factorSecret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

// offeredHere stands for the code of the second factor that the page offers.
const offeredHere = "offered"

// offeredCode is the code of the second factor that the page with a token offers to a member.
func (s *panelShop) offeredCode(as role, token string) string {
	raw, err := totp.Base32.DecodeString(offeredSecret(s.shop.member(s.tokens[as]), token))
	s.shop.ok(err)
	return totp.Code(raw, int64(s.shop.clock))
}

func (w *formWorld) knowCode() {
	w.names["totp"] = totp.Code([]byte("12345678901234567890"), int64(w.panelShop.shop.clock))
}

// haveCard gives Ana a card.
func (w *formWorld) haveCard() {
	ana, _ := parseID(w.names["customerId"])
	w.panelShop.shop.card(ana, 0)
}

// haveJoin has somebody fill in the form to join.
func (w *formWorld) haveJoin() {
	_, w.names["joinCode"] = w.panelShop.shop.joining(preEnrolment{FirstName: "Sol", Phone: "+525511112222"})
}

// haveTickets lets the organization have tickets, and makes one.
func (w *formWorld) haveTickets() {
	w.panelShop.shop.apply(bytes.Replace(w.panelShop.shop.exportedDocument(), []byte(`"externalIds":"Free"`), []byte(ticketSettings), 1))
	w.names["ticketId"] = w.panelShop.shop.ticket("R-1").ID.String()
}

// haveHold sets points of Ana aside.
func (w *formWorld) haveHold() {
	ana, ok := parseID(w.names["customerId"])
	if !ok {
		w.panelShop.shop.Fatal(w.names)
	}
	w.names["holdId"] = w.panelShop.shop.hold(ana, "40", usualHold, "").String()
}

// haveOwn makes a sale and a redemption of Ana that are the owner's.
func (w *formWorld) haveOwn() {
	ana, ok := parseID(w.names["customerId"])
	if !ok {
		w.panelShop.shop.Fatal(w.names)
	}
	must(w.panelShop.shop, func(t *txn) (any, error) {
		t.by = creator{Type: byUser, ID: w.panelShop.users[roleOwner]}
		s, _, err := t.sales.register(newSale{Customer: ana, Type: typePurchase, Total: dec("100"), Source: sourceAPI})
		if err != nil {
			return nil, err
		}
		x, err := t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		if err != nil {
			return nil, err
		}
		w.names["transactionId"], w.names["redemptionId"] = s.ID.String(), x.ID.String()
		return nil, nil
	})
}

// haveAsked has the owner ask to undo both.
func (w *formWorld) haveAsked() {
	w.haveOwn()
	for _, path := range []string{"/panel/caja/{customerId}/venta/{transactionId}/pedir", "/panel/caja/{customerId}/canje/{redemptionId}/pedir"} {
		if answer := w.panelShop.post(roleOwner, w.filled(path), url.Values{}); answer.Code != http.StatusSeeOther {
			w.panelShop.shop.Fatal(answer.Code, answer.Body)
		}
	}
}

// haveFactor gives the owner a second factor.
func (w *formWorld) haveFactor() {
	w.knowCode()
	m := w.panelShop.shop.member(w.panelShop.tokens[roleOwner])
	codes, err := by(w.panelShop.shop, m, func(t *txn) ([]string, error) { return t.people.addFactor(m, factorSecret, w.names["totp"]) })
	w.panelShop.shop.ok(err)
	w.names["recovery"] = codes[0]
}

// runServer makes the owner an operator, who has to have a second factor.
func (w *formWorld) runServer() {
	w.haveFactor()
	w.owned(func(t *txn, u *user) error { return t.people.setOperator(u, true) })
}

// TestPanelForms: the table has a row for each route that takes a form, and no other.
func TestPanelForms(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, f := range panelForms() {
		if routes = append(routes, f.path); reflect.DeepEqual(goodForms[f.path], goodForm{}) && !isReviewed(&f) {
			t.Errorf("no good form of %s", f.path)
		}
	}
	for path := range goodForms {
		if !slices.Contains(routes, path) {
			t.Errorf("%s takes no form", path)
		}
	}
}

// TestPanelFormsAudited: each form that changes something leaves one entry in the audit log,
// by the member who sent it, with the request's id; sent again, none. The store's verification
// checks the chain.
// Panel checks 31 and 60.
func TestPanelFormsAudited(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, f := range panelForms() {
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			w, g := newFormWorld(t), goodForms[f.path]
			if g.prepare != nil {
				g.prepare(w)
				g.prepare = nil
			}
			before := w.panelShop.shop.entries()
			first, fields := w.sent(&f, &g)
			after := w.panelShop.shop.entries()
			w.checkAudited(&g, first, auditedSince(t, before, after))
			if changed := lettersChanged(before, after); g.silent != "" && changed != "" {
				t.Errorf("%s, and entries of %q have changed", g.silent, changed)
			} else if g.session && changed != "S" {
				t.Errorf("entries of %q have changed", changed)
			} else if g.silent == "" && strings.Trim(changed, "ABnFiI") == "" && g.alone != serverAlone && !g.logs {
				t.Errorf("entries of %q alone have changed", changed)
			}
			if f.run != nil {
				return
			}
			again := w.panelShop.post(cmpOr(g.as, roleOwner), w.filled(f.path), fields)
			if again.Code != http.StatusSeeOther || first.Code == http.StatusSeeOther && again.Header().Get("Location") != first.Header().Get("Location") {
				t.Errorf("again: %d %s\n%s", again.Code, again.Header().Get("Location"), again.Body)
			}
			same(t, "the store after the form came again", w.panelShop.shop.entries(), after)
		})
	}
}

func cmpOr(r, usual role) role {
	if r == "" {
		return usual
	}
	return r
}

// checkAudited checks the entries that a form has left.
func (w *formWorld) checkAudited(g *goodForm, answer *httptest.ResponseRecorder, made []*auditEntry) {
	w.panelShop.shop.Helper()
	want := 1
	switch {
	case g.silent != "", g.session, g.later, g.unlogged:
		want = 0
	case g.pair != "":
		want = 2
	}
	if len(made) != want {
		for _, e := range made {
			w.panelShop.shop.Errorf("%s %s %v", e.Action, e.Subject, e.Changes)
		}
		w.panelShop.shop.Fatalf("%d entries, want %d", len(made), want)
	}
	for i, e := range made {
		by := w.panelShop.users[roleOwner]
		if e.Action == auditUserJoined {
			by, _ = parseID(e.Subject)
		}
		if e.By.Type != byUser || e.By.ID != by || e.RequestID == "" || e.RequestID != answer.Header().Get("X-Request-Id") {
			w.panelShop.shop.Errorf("%s by %+v in request %q, want %s in %q", e.Action, e.By, e.RequestID, by, answer.Header().Get("X-Request-Id"))
		}
		if strings.HasPrefix(e.Action, "points.") && e.Subject != w.names["customerId"] {
			w.panelShop.shop.Errorf("%s is about %s, which is no customer", e.Action, e.Subject)
		}
		if i > 0 && (e.Subject == made[0].Subject && e.Action != "customer.created" || e.Action == made[0].Action) {
			w.panelShop.shop.Errorf("%s twice of %s", e.Action, e.Subject)
		}
	}
}

// auditedSince returns the entries of the audit logs of all organizations that one state of the
// store has and an earlier one has not.
func auditedSince(t testing.TB, before, after memTx) (made []*auditEntry) {
	t.Helper()
	for _, e := range after {
		if _, was, _ := before.Get(e.Key); e.Key[0] == 'A' && !was {
			entry, err := get[auditEntry](after, e.Key)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, entry)
		}
	}
	return made
}

// lettersChanged are the letters of the tables in which two states of a store differ.
func lettersChanged(a, b memTx) (letters string) {
	values := map[string]string{}
	for _, e := range a {
		values[string(e.Key)] = string(e.Value)
	}
	note := func(k string) {
		if !strings.Contains(letters, k[:1]) {
			letters += k[:1]
		}
	}
	for _, e := range b {
		if value, was := values[string(e.Key)]; !was || value != string(e.Value) {
			note(string(e.Key))
		}
		delete(values, string(e.Key))
	}
	for k := range values {
		note(k)
	}
	return letters
}

var patternName = regexp.MustCompile(`\{\w+\}`)

// TestPanelPagesWriteNothing: nothing that a link leads to changes anything, be it there or not: no
// page, and no address of a form. Else another site would do it in the member's name.
func TestPanelPagesWriteNothing(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	w := newFormWorldOn(newOperatedShop(t).panelShop)
	w.haveTickets()
	before := w.panelShop.shop.entries()
	var paths []string
	for _, p := range panelPages() {
		paths = append(paths, p.path)
	}
	for _, f := range panelForms() {
		paths = append(paths, f.path)
	}
	for _, pattern := range paths {
		for _, path := range []string{w.filled(pattern), patternName.ReplaceAllString(pattern, id{9}.String())} {
			if answer := w.panelShop.open(roleOwner, path); answer.Code >= 500 {
				t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
			}
			if after := w.panelShop.shop.entries(); !sameEntries(before, after) {
				t.Errorf("%s: entries of %q have changed", path, lettersChanged(before, after))
				before = after
			}
		}
	}
}

// TestResetAudited: who sets another password by a link that also takes away the second factor
// leaves one entry, with both.
func TestResetAudited(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	w.haveFactor()
	var token string
	w.owned(func(t *txn, u *user) (err error) {
		_, token, err = t.people.resetUser(u, true)
		return err
	})
	before := w.panelShop.shop.entries()
	if answer := w.panelShop.post("", "/panel/invitacion/"+token, url.Values{"password": {"otro tren azul 9"}}); answer.Code != http.StatusSeeOther {
		t.Fatal(answer.Code, answer.Body)
	}
	made := auditedSince(t, before, w.panelShop.shop.entries())
	if len(made) != 1 || len(made[0].Changes) != 2 || made[0].Changes[0].Field != "password" || made[0].Changes[1].Field != "secondFactor" {
		t.Errorf("%+v", made)
	}
}

// asShown are the fields of a page's form as the page shows them.
func asShown(page string) url.Values {
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(mainOf(page), -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	return fields
}

// TestPanelFormsIdle: a form that finds done what it would do leaves no entry in the audit log:
// what stands there in somebody's name, they did.
func TestPanelFormsIdle(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	w.haveTickets()
	w.panelShop.shop.ticket("R-2")
	w.panelShop.shop.ok(w.panelShop.shop.cancelTicket(ticketCancel{ExternalID: "R-1"}))
	if !w.panelShop.shop.config().uniqueExternalIDs() {
		t.Fatal("externalIds are not unique")
	}
	customer := w.names["customerId"]
	sale := fmt.Sprintf(`{"customerId": %q, "totalAmount": 150, "externalId": "T-9"}`, customer)
	if res := answerTo(w.panelShop.api, newRequest("POST", "/api/v1/transactions", w.names["key"], sale)); res.Code != http.StatusCreated {
		t.Fatal(res.Code, res.Body)
	}
	before := len(w.panelShop.shop.audited(auditFilter{}))
	for _, test := range []struct {
		reason, path string
		fields       url.Values
	}{
		{"a ticket that the API has registered", "/panel/caja/" + customer + "/venta", url.Values{"totalAmount": {"150"}, "externalId": {"T-9"}}},
		{"a ticket that was given", newTicketPath, url.Values{"totalAmount": {"100"}, "externalId": {"R-2"}}},
		{"a ticket that was cancelled", w.filled(ticketPath + "/cancelar"), url.Values{}},
		{"a customer as it is", "/panel/clientes/" + customer + "/editar", asShown(w.panelShop.open(roleOwner, "/panel/clientes/"+customer+"/editar").Body.String())},
	} {
		for _, as := range []role{roleOwner, roleManager} {
			if answer := w.panelShop.post(as, test.path, test.fields); answer.Code != http.StatusSeeOther {
				t.Errorf("%s: %d\n%s", test.reason, answer.Code, mainOf(answer.Body.String()))
			}
			test.fields.Del(tokenField)
		}
		if all := w.panelShop.shop.audited(auditFilter{}); len(all) != before {
			t.Errorf("%s left %s", test.reason, all[before:])
			before = len(all)
		}
	}
}

// readingsForm is a form of TestPanelFormsReadings: the page that has it, with a query, and what
// is sent.
type readingsForm struct {
	*panelForm
	query  string
	fields url.Values
}

// formsWithAmounts are all forms of the panel that the API reads; a new rule's for each effect,
// since its controls differ.
func (w *formWorld) formsWithAmounts() (list []readingsForm) {
	for _, f := range panelForms() {
		if f.handle == nil {
			continue
		}
		switch g := goodForms[f.path]; f.path {
		case "/panel/programa/{programId}/nueva":
			for _, effect := range ruleEffects {
				list = append(list, readingsForm{&f, "?efecto=" + effect, url.Values{"effect": {effect}, "name": {"Martes"}}})
			}
		case "/panel/ventas/{transactionId}/devolucion": // with items, their sum is the amount
			list = append(list, readingsForm{&f, "", url.Values{"customerId": {w.names["customerId"]}}})
		case "/panel/segmentos/{segmentId}": // with a comparison
			g = goodForms["/panel/segmentos/nuevo"]
			fallthrough
		default:
			list = append(list, readingsForm{&f, "", w.fields(&g)})
		}
	}
	simulator := simulatorForm
	simulator.path, simulator.from = "/panel/simulador", "/panel/simulador"
	return append(list, readingsForm{&simulator, w.filled("?cliente={customerId}"), url.Values{"cliente": {w.names["customerId"]}, "totalAmount": {"10"}}})
}

// send sends a form as its method says.
func (f *readingsForm) send(w *formWorld, fields url.Values) *httptest.ResponseRecorder {
	if f.path == simulatorArea().pages[0].path {
		return w.panelShop.open(roleOwner, f.path+"?"+fields.Encode())
	}
	return w.panelShop.post(roleOwner, w.filled(f.path), fields)
}

var (
	formElement   = regexp.MustCompile(`(?s)<form.*?</form>`)
	decimalForm   = regexp.MustCompile(`name="([^"]*)" value="[^"]*" autocomplete="off" inputmode="decimal"`)
	hiddenForm    = regexp.MustCompile(`type="hidden" name="([^"]*)"`)
	readingButton = regexp.MustCompile(`<button class="button" name="(_reading|_review)" value="([^"=]*=[^"]*)">([^<]*)<`)
)

// element is the element of a form in a page: the last one that names its path, or else one
// that leads to its own page.
func (f *readingsForm) element(w *formWorld, page string) (found string) {
	all := formElement.FindAllString(mainOf(page), -1)
	for _, e := range slices.Backward(all) {
		if strings.Contains(e, `action="`+w.filled(f.path)+`"`) {
			return e
		}
		if head, _, _ := strings.Cut(e, ">"); !strings.Contains(head, " action=") {
			found = e
		}
	}
	return found
}

// amounts are the names of the form's controls that take a number, and of those that may. Rows
// of a list are numbered anew as they are read: the first one stands for all.
func (f *readingsForm) amounts(element string) (sure, maybe []string) {
	hidden := map[string]bool{}
	for _, m := range hiddenForm.FindAllStringSubmatch(element, -1) {
		hidden[m[1]] = true
	}
	first := func(name string) bool { return !strings.Contains(name, "[") || strings.Contains(name, "[0]") }
	for _, m := range decimalForm.FindAllStringSubmatch(element, -1) {
		if first(m[1]) {
			sure = append(sure, m[1])
		}
	}
	var walk func(members []formMember, prefix string)
	walk = func(members []formMember, prefix string) {
		for _, m := range members {
			if name := prefix + m.name; m.kind == amountMember && !hidden[name] && !slices.Contains(sure, name) {
				sure = append(sure, name)
			}
			walk(m.of, prefix+m.name+"[0].")
		}
	}
	walk(f.members, "")
	const comparison = "rows[0].value" // takes words, too
	if f.fields.Has(comparison) {
		sure = append(sure, comparison)
	}
	for name := range f.fields {
		if first(name) && !hidden[name] && !slices.Contains(sure, name) {
			maybe = append(maybe, name)
		}
	}
	return sure, maybe
}

// TestPanelFormsReadings: each form that takes a number offers both readings of one that has
// two. Either button sends the form as it was sent, reviewed or not, with that reading.
// Panel check 32.
func TestPanelFormsReadings(t *testing.T) {
	t.Parallel()
	skipShort(t)
	names := newFormWorld(t)
	for i, f := range names.formsWithAmounts() {
		languages := []string{"es", "en"}
		if !orderedtest.Long() {
			languages = languages[i%2:][:1]
		}
		t.Run(f.path+f.query, func(t *testing.T) {
			t.Parallel()
			w := newFormWorld(t)
			w.haveTickets()
			w.names["userId"] = w.panelShop.users[roleManager].String() // who may give points by hand
			for _, again := range w.formsWithAmounts() {                // with the names of this world
				if again.path == f.path && again.fields.Get("effect") == f.fields.Get("effect") {
					f = again
				}
			}
			opened := f.element(w, w.panelShop.open(roleOwner, w.filled(f.from)+f.query).Body.String())
			sure, maybe := f.amounts(opened)
			if isReviewed(f.panelForm) && opened == "" || strings.Count(opened, `inputmode="decimal"`) != len(decimalForm.FindAllString(opened, -1)) {
				t.Fatalf("the form's controls are not found\n%s", opened)
			}
			for _, lang := range languages {
				w.panelShop.speaks(roleOwner, lang)
				for _, name := range slices.Backward(append(sure, maybe...)) { // the one that a form cannot be without comes last: it may do what can be done once
					for _, review := range []bool{false, true} {
						if !review || strings.Contains(opened, `name="_review"`) {
							w.checkReadings(&f, lang, name, review, slices.Contains(sure, name))
						}
					}
				}
			}
		})
	}
}

// checkReadings sends a form with an ambiguous amount, and presses the second button.
func (w *formWorld) checkReadings(f *readingsForm, lang, name string, review, sure bool) {
	t := w.panelShop.shop
	t.Helper()
	fields := url.Values{name: {"1.500"}}
	for n, values := range f.fields {
		if n != name {
			fields[n] = values
		}
	}
	if isReviewed(f.panelForm) {
		fields.Set(etagField, w.panelShop.stamp(roleOwner, "/panel/configuracion"))
	}
	if review {
		fields.Set(reviewField, "1")
	}
	ambiguous, _, _ := strings.Cut(tr(speaking(lang), "error.amount_ambiguous"), "%s")
	page := f.send(w, fields).Body.String()
	if !strings.Contains(page, ambiguous) {
		if sure {
			t.Errorf("%s: nobody asks how to read 1.500\n%s", name, mainOf(page))
		}
		return
	}
	element := f.element(w, page)
	buttons := readingButton.FindAllStringSubmatch(element, -1)
	if len(buttons) != 2 || buttons[0][2] != name+"=1.5000" || buttons[0][3] != "1.50" || buttons[1][2] != name+"=1500" || buttons[1][3] != "1,500.00" {
		t.Errorf("%s in %s has the buttons %q\n%s", name, lang, buttons, mainOf(page))
		return
	}
	if _, first, _ := strings.Cut(element, "<button"); strings.HasPrefix("<button"+first, buttons[0][0]) {
		t.Errorf("%s: Enter chooses a reading", name)
	}
	fields.Del(reviewField)
	fields.Set(buttons[1][1], buttons[1][2])
	chosen := f.send(w, fields)
	page = chosen.Body.String()
	if strings.Contains(page, ambiguous) {
		t.Errorf("%s in %s is asked again\n%s", name, lang, mainOf(page))
	}
	if again := f.element(w, page); strings.Contains(again, `name="`+name+`"`) && !strings.Contains(again, `name="`+name+`" value="1500"`) {
		t.Errorf("%s is not 1500\n%s", name, again)
	}
	if (review || isReviewed(f.panelForm)) && chosen.Code == http.StatusSeeOther {
		t.Errorf("%s: the button has sent the form without a review", name)
	}
}

// FuzzForm posts any text to any route of the panel, as anybody.

// A formImage is the state of a formWorld that each input starts from.
type formImage struct {
	world  *formWorld
	state  memTx
	routes []panelForm
}

// formSenders are who sends a form; "" sends no session, and "half" one without its second
// factor.
var formSenders = append(slices.Clone(roles), "", "half")

func newFormImage(t testing.TB) *formImage {
	w := newFormWorld(t)
	w.haveFactor()
	w.panelShop.tokens["half"] = must(w.panelShop.shop, func(t *txn) (string, error) {
		return t.people.startSession(w.panelShop.users[roleOwner], sessionHalf, &arrival{})
	})
	return &formImage{w, w.panelShop.shop.entries(), panelForms()}
}

// post sends a text to a route, on a store of its own. The store is returned as it is then.
func (im *formImage) post(t testing.TB, route, sender uint8, text string) (*panelForm, *httptest.ResponseRecorder, memTx) {
	store := newMemStore().(*memStore)
	t.Cleanup(func() { store.Close() })
	store.state.Store(&memPages{im.state})
	seeds := 0
	e := newEngine(store, func() time.Time { return im.world.panelShop.shop.clock.time() }, func() seed {
		seeds++
		return sha256.Sum256(fmt.Append(nil, seeds))
	})
	a := newAPIOf(e)
	a.engine.cardsAt = cardsBase
	a.trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	a.logins.iterations = 2
	p := thePanel(a, panelAddress{}, e.sessionLimits)
	p.server = im.world.panelShop.panel.server
	a.panel = p
	f := &im.routes[int(route)%len(im.routes)]
	r := httptest.NewRequest("POST", panelBase+im.world.filled(f.path), strings.NewReader(text))
	if token := im.world.panelShop.tokens[formSenders[int(sender)%len(formSenders)]]; token != "" {
		r.AddCookie(&http.Cookie{Name: "sello", Value: token})
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", panelBase)
	w := answerTo(a, r)
	return f, w, store.entries()
}

// faults are what is wrong with an answer, whatever was posted.
func (im *formImage) faults(f *panelForm, w *httptest.ResponseRecorder, after memTx) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	changed := strings.Trim(lettersChanged(im.state, after), map[bool]string{true: "S"}[f.path == "/panel/entrar/codigo"]) // which counts its tries
	switch {
	case w.Code >= 500:
		fault("status %d", w.Code)
	case w.Code >= 400 && changed != "":
		fault("%d, and entries of %q have changed", w.Code, changed)
	case w.Code == http.StatusSeeOther && !strings.HasPrefix(w.Header().Get("Location"), "/panel"):
		fault("leads to %q", w.Header().Get("Location"))
	case w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment"):
	case w.Code != http.StatusSeeOther && w.Header().Get("Content-Type") != htmlType[0]:
		fault("is %q", w.Header().Get("Content-Type"))
	case w.Code != http.StatusSeeOther && !strings.HasSuffix(w.Body.String(), "</html>\n"):
		fault("is cut off")
	}
	if missing := missingHeaders(w.Header()); missing != "" {
		fault("has no %s", missing)
	}
	if changed != "" {
		if report, err := verify(after, im.world.panelShop.shop.clock, nil); err != nil || len(report.Problems) > 0 {
			fault("verify: %v %v", err, report)
		}
	}
	return faults
}

// missingHeaders names a header of every page that is missing; "" if none is.
func missingHeaders(h http.Header) string {
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=()", "X-Request-Id": "",
	} {
		if got := h.Get(name); got == "" || !strings.HasPrefix(got, want) {
			return name
		}
	}
	return ""
}

// seeds calls add with forms that do something, and some that do not.
func (im *formImage) seeds(add func(route, sender uint8, text string)) {
	w := im.world
	common := url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789A"}, etagField: {w.panelShop.stamp(roleOwner, "/panel/configuracion")}}
	for i, f := range im.routes {
		g := goodForms[f.path]
		fields := w.fields(&g)
		for name := range common {
			fields.Set(name, common.Get(name))
		}
		sender := uint8(slices.Index(formSenders, role(strings.TrimSuffix(string(g.as), "nobody"))))
		if g.as == "" {
			sender = 0
		}
		if f.path == "/panel/clientes/{customerId}/editar" {
			fields.Del(etagField)
		}
		if isReviewed(&f) {
			_, fields = w.panelShop.reviewed("/panel/configuracion", w.filled(f.path), fields)
		}
		add(uint8(i), sender, fields.Encode())
		add(uint8(i), uint8(i), fields.Encode())
		add(uint8(i), 0, "")
		wrong := common.Encode()
		for name := range fields {
			if !strings.HasPrefix(name, "_") {
				wrong += "&" + url.QueryEscape(name) + "=%00%FF%27%22%3C" + strings.Repeat("x", 300)
			}
		}
		add(uint8(i), 0, wrong)
	}
	for _, text := range []string{"%", "a=1&a=2", "=", "_org", "_token=%zz", strings.Repeat("a=1&", 5000), "\x00", `{"a":1}`, common.Encode() + "&items[99].sku=a&items[-1].sku=b&items[1e9].sku=c"} {
		add(1, 0, text)
	}
}

func FuzzForm(f *testing.F) {
	im := newFormImage(f)
	im.seeds(func(route, sender uint8, text string) { f.Add(route, sender, text) })
	f.Fuzz(func(t *testing.T, route, sender uint8, text string) {
		form, answer, after := im.post(t, route, sender, text)
		for _, fault := range im.faults(form, answer, after) {
			t.Errorf("POST %s as %q with %q: %s\n%s", form.path, formSenders[int(sender)%len(formSenders)], text, fault, answer.Body)
		}
	})
}

// TestFuzzFormSeeds: of the seeds that should do something all do, so that FuzzForm begins
// with each form at work.
func TestFuzzFormSeeds(t *testing.T) {
	t.Parallel()
	im := newFormImage(t)
	did, n := map[string]bool{}, 0
	im.seeds(func(route, sender uint8, text string) {
		if n++; n%4 != 1 || n > 4*len(im.routes) {
			return
		}
		f, w, after := im.post(t, route, sender, text)
		did[f.path] = w.Code < 400 && lettersChanged(im.state, after) != ""
	})
	for _, f := range im.routes {
		if g := goodForms[f.path]; !did[f.path] && g.silent == "" && g.prepare == nil {
			t.Errorf("the seed of %s does nothing", f.path)
		}
	}
}
