package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"sello/internal/disk"
	"sello/internal/password"
)

func demoFlags(c *invocation) {
	serveFlags(c)
	jsonFlag(c)
	c.db = "sello-demo.db"
	c.set.Lookup("db").DefValue = c.db
}

// demoKeyDays is how many days a key that the demo prints is valid.
const demoKeyDays = 7

const (
	demoSlug     = "cafe-luna"
	demoOperator = "sello demo" // no user of a system has a name with a blank
)

// checkDemo refuses a file with an organization unless the sample is in it, made by the
// demo: any other may be real, and must not get a key.
func (c *invocation) checkDemo(ctx context.Context, s *service) error {
	e := s.api.engine
	organizations, err := viewStore(ctx, e.store, func(tx Tx) (uint64, error) {
		n, err := organizationCount(tx)
		return n, err
	})
	if err != nil || organizations == 0 {
		return err
	}
	org, err := viewStore(ctx, e.store, func(tx Tx) (uint32, error) { return organizationNumber(tx, demoSlug) })
	if err != nil {
		return err
	}
	own := false
	if org != 0 {
		own, err = read(ctx, e, org, instantOf(e.now()), func(t *txn) (bool, error) {
			n, err := t.count()
			if err != nil || n.Audit == 0 {
				return false, err
			}
			made, err := t.audit.entry(1)
			return err == nil && made.By == creator{Type: byCommand, Actor: demoOperator}, err
		})
	}
	if err == nil && !own {
		err = adminErrorf("%s: tiene datos que no hizo sello demo: elige otro archivo con -db", c.dbName())
	}
	return err
}

// runDemo serves a sample organization. Each start prints a new key, since keys
// are stored only as hashes, and a new link into the panel. Earlier keys work until they expire.
func runDemo(ctx context.Context, c *invocation) error {
	ctx = withOperator(ctx, demoOperator)
	return c.serve(ctx, c.checkDemo, func(s *service) error {
		var madeUp disk.Progress
		d := &demo{engine: s.api.engine, admin: &admin{engine: s.api.engine}, tell: madeUp.Set}
		err := c.progress("inventando un año de ventas").during(madeUp.Done, func() error { return d.prepare(ctx) })
		if err != nil {
			return err
		}
		_, link := c.panelServed(s.listener.Addr())
		started, err := d.start(ctx, s.api.logins, link)
		if err != nil {
			return err
		}
		scheme := "http"
		if c.tlsCert != "" {
			scheme = "https"
		}
		started.Base = scheme + "://" + s.listener.Addr().String() + "/api/v1"
		started.File = c.fullPath()
		return c.print(started, started.tell)
	})
}

// demoStarted is the demo's output.
type demoStarted struct {
	panelEntry
	Key        string  `json:"key"`
	Base       string  `json:"base"`
	CustomerID id      `json:"customerId"`
	ExpiresAt  instant `json:"expiresAt"`
	File       string  `json:"file"`
}

func (d *demoStarted) tell(w io.Writer) {
	if d.Panel != "" {
		fmt.Fprintf(w, "Café Luna, con un año de ventas inventadas. Su panel, con la cuenta de %s:\n\n  %s\n\n", d.Email, d.Panel)
	}
	if d.Password != "" {
		fmt.Fprintf(w, "Si pide la contraseña: %s\n\n", d.Password)
	}
	fmt.Fprintf(w, `La API, en %[1]s, con una clave válida %[3]d días:

  export SELLO_KEY=%[2]s

  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/customers
  curl -H "Authorization: Bearer $SELLO_KEY" %[1]s/points/customers/%[4]s/balance
  curl -H "Authorization: Bearer $SELLO_KEY" -H "Content-Type: application/json" -d '{"customerId":"%[4]s","totalAmount":150}' %[1]s/transactions

Ctrl-C termina; los datos quedan en %[5]s
`, d.Base, d.Key, demoKeyDays, d.CustomerID, d.File)
}

// A demo is the sample organization of a file.
type demo struct {
	engine *engine
	admin  *admin
	tell   func(done float64) // how much of the year is made up, of 1
}

// What the sample has.
const (
	demoSeed      = 1
	demoCustomers = 400
	demoDays      = 365
)

// demoStaff are the people of the sample: an owner, who alone has a password, and then who is at
// the till, in the order of madeUp.staff.
var demoStaff = []struct {
	name, email string
	role        role
}{
	{"Elena Ortiz", "elena@example.com", roleOwner},
	{"Rosa Méndez", "rosa@example.com", roleManager},
	{"Lucía Vega", "lucia@example.com", roleCashier},
	{"Diego Salas", "diego@example.com", roleManager},
}

// prepare makes the sample, unless the file has it.
func (d *demo) prepare(ctx context.Context) error {
	now := instantOf(d.engine.now())
	began := instantOf(now.time().AddDate(0, 0, -demoDays-1))
	slugs, err := d.admin.organizations(ctx, struct{}{})
	if err != nil {
		return err
	}
	if len(slugs) == 0 {
		seed := d.engine.seed()
		if _, err := updateStore(ctx, d.engine.store, func(tx Tx) (*applied, error) {
			return applyDocument(tx, demoDocument, newMint(began, seed), byOperator(ctx), false)
		}); err != nil {
			return err
		}
	}
	org, err := d.admin.organization(ctx, demoSlug)
	if err != nil {
		return err
	}
	had, err := read(ctx, d.engine, org, now, (*txn).count)
	if err != nil || had.Customers > 0 {
		return err
	}
	owner, err := demoPassword(d.engine.seed(), began, password.Iterations)
	if err != nil {
		return err
	}
	_, err = write(ctx, d.engine, org, began, func(t *txn) (any, error) {
		t.by = byOperator(ctx)
		staff, err := addDemoStaff(t, owner)
		if err != nil {
			return nil, err
		}
		return nil, makeUp(demoSeed, demoCustomers, demoDays, now, t.cfg.zone, staff).write(t, d.tell)
	})
	return err
}

// addDemoStaff makes the people of the sample, and returns those at the till.
func addDemoStaff(t *txn, owner passwordHash) (atTill []id, err error) {
	for _, s := range demoStaff {
		u := &user{Email: s.email, Name: s.name, Password: owner, Org: t.org}
		if s.role != roleOwner {
			secret := t.secret("password of nobody", 0)
			u.Password.Sum = secret[:]
		}
		if err := t.people.addUser(u); err != nil {
			return nil, err
		}
		if err := t.people.addMember(u.ID, &membership{Role: s.role, Since: t.now, By: t.by}); err != nil {
			return nil, err
		}
		if err := t.audit.note(auditUserJoined, u.ID.String(), []change{{"role", nil, s.role}}); err != nil {
			return nil, err
		}
		if s.role != roleOwner {
			atTill = append(atTill, u.ID)
		}
	}
	return atTill, nil
}

// demoPassword makes a password that follows from the salt of its hash: so each start can tell
// it, unless the owner has set another one.
func demoPassword(s seed, at instant, iterations int) (h passwordHash, err error) {
	h = passwordHash{Iterations: iterations, Salt: s[:password.SaltSize], At: at}
	h.Sum, err = h.derive(demoPasswordOf(&h))
	return h, err
}

func demoPasswordOf(h *passwordHash) string {
	sum := sha256.Sum256(append([]byte(demoOperator), h.Salt...))
	return fmt.Sprintf("%x-%x-%x-%x", sum[:2], sum[2:4], sum[4:6], sum[6:8])
}

// start makes what whoever started the demo needs: a key and, unless panel is "", a link into the
// panel at that address.
func (d *demo) start(ctx context.Context, l *logins, panel string) (*demoStarted, error) {
	now := d.engine.now()
	k, err := d.admin.createKey(ctx, keyRequest{Org: demoSlug, Name: "demo", Expires: now.AddDate(0, 0, demoKeyDays).Format(time.RFC3339)})
	if err != nil {
		return nil, err
	}
	org, err := d.admin.organization(ctx, demoSlug)
	if err != nil {
		return nil, err
	}
	started := &demoStarted{Key: k.Key, ExpiresAt: k.ExpiresAt}
	if started.CustomerID, err = read(ctx, d.engine, org, instantOf(now), func(t *txn) (id, error) {
		c, err := t.customers.at(1)
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	}); err == nil {
		started.panelEntry, err = enterPanel(ctx, d.engine, org, l, panel)
	}
	return started, err
}

// A panelEntry is how the sample's owner gets into the panel.
type panelEntry struct {
	Panel    string `json:"panel,omitempty"` // link that logs the owner in; "" where no panel is served, or the owner is gone
	Email    string `json:"email,omitempty"`
	Password string `json:"password,omitempty"` // "" if the owner has set another one
}

// enterPanel makes a link that logs the owner in to the panel at an address; "": there is none.
func enterPanel(ctx context.Context, e *engine, org uint32, l *logins, panel string) (entry panelEntry, err error) {
	owner, err := read(ctx, e, org, instantOf(e.now()), func(t *txn) (*user, error) {
		u, err := userByEmail(t.Tx, demoStaff[0].email)
		if err != nil || u == nil {
			return nil, err
		}
		m, err := t.people.teammate(u.ID)
		if errors.Is(err, errNotMember) || err == nil && !m.active() {
			return nil, nil
		}
		return u, err
	})
	if err != nil || owner == nil || panel == "" {
		return entry, err
	}
	s := e.seed()
	token := hex.EncodeToString(s[:])
	l.entry.Store(&entryLink{tokenHash(token), owner.ID, org})
	entry.Panel, entry.Email = invitationLink(panel, token), owner.Email
	if first, err := owner.Password.matches(demoPasswordOf(&owner.Password)); err != nil || !first {
		return entry, err
	}
	entry.Password = demoPasswordOf(&owner.Password)
	return entry, nil
}
