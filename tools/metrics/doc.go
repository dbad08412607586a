// Package metrics only tests: that Prometheus reads what `sello serve -metrics` serves, and
// that the alerts and the dashboard of docs/prometheus speak of what is there. It has a
// module of its own, since it takes Prometheus's parsers.
package metrics
