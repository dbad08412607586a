// Package panel has only tests. They use the panel in Chromium, as people do, against a sello
// that they build: log-in, requests, the till, and what everybody meets on every page:
// accessibility by axe, the keyboard, sizes, contrast, weight, and what scripts and other
// sites may not do. Those of TestCard… use the pages that customers open on their phones.
//
// What comes from npm is pinned by package-lock.json and installed into a temporary directory.
// A test skips and says why where Chromium, npm or the registry is missing.
//
// docs/panel-checks.md says which test shows what. At the end of each tab its test fails if the
// page wrote to the console, broke its policy, or talked to another host. TestPlatform… try what
// browsers do with cookies, origins and Back.
//
//	go test -run TestPictures -pictures   makes docs/images anew
//
//	SELLO_SCREENSHOTS=DIR  where a failed test leaves pictures of its pages
//	SELLO_TEST_LONG=1      the long forms: the whole browser, each page in all looks and loaded at
//	                       all sizes, each form sent from both places
package panel
