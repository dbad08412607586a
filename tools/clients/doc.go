// Package clients has only tests. They check what integrators meet, from outside:
//
//   - openapi.json, by the linters Spectral and Redocly;
//   - clients that oapi-codegen (Go) and openapi-typescript make of it, in a till's day
//     against a server;
//   - the programs of docs/integrar.md, against a server whose answers get lost;
//   - the page /docs, by axe in Chromium.
//
// What comes from npm is pinned by package-lock.json and installed into a temporary
// directory. A test skips and says why where its program or the registry is missing.
package clients
