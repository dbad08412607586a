package main

import (
	"net"
	"net/netip"
	"net/url"
	"time"
)

// panelFlags are the flags of serve and demo about the panel.
func panelFlags(c *invocation) {
	limits := usualSessionLimits()
	c.set.StringVar(&c.panel, "panel", "", "`dirección` con la que se abre el panel, como https://puntos.example.mx, u off, que no lo sirve; sin ella, la propia si es de esta máquina, y si no, off")
	c.set.BoolVar(&c.hsts, "hsts", true, "con -tls-cert, las páginas del panel dicen al navegador que use solo HTTPS con este nombre, durante un año")
	c.set.DurationVar(&c.panelIdle, "panel-idle", limits.idle, "`tiempo` sin uso tras el que termina una sesión del panel, de al menos 5m")
	c.set.DurationVar(&c.panelLongest, "panel-longest", limits.longest, "`tiempo` tras el que termina una sesión del panel en todo caso")
}

// leastIdle is the least that -panel-idle may be: whoever reads a page for longer would lose
// what is typed next.
const leastIdle = 5 * time.Minute

// checkPanel returns an error if the flags about the panel are wrong.
func (c *invocation) checkPanel() (err error) {
	c.panelAt, c.panelOn, err = parsePanelAddress(c.panel)
	switch {
	case err != nil:
		return err
	case c.panelIdle < leastIdle:
		return &usageError{"-panel-idle debe ser de al menos 5m"}
	case c.panelLongest < c.panelIdle:
		return &usageError{"-panel-longest no puede ser menor que -panel-idle"}
	}
	return nil
}

// panelServed returns the address of the panel of a server that listens at an address, and the
// text that its links begin with; "" if the server has no panel. Without -panel it has one only
// where nobody else can reach it.
func (c *invocation) panelServed(at net.Addr) (address panelAddress, link string) {
	switch listens, err := netip.ParseAddrPort(at.String()); {
	case !c.panelOn:
		return panelAddress{}, ""
	case c.panelAt.url != nil:
		return c.panelAt, c.panelAt.origin()
	case err != nil || !listens.Addr().Unmap().IsLoopback():
		return panelAddress{}, ""
	case c.tlsCert != "":
		address = panelAddress{&url.URL{Scheme: "https", Host: at.String()}}
		return address, address.origin()
	}
	return panelAddress{}, "http://" + at.String()
}
