// Package panel has only tests. They use the panel in Chromium, as people do, against a sello
// that they build: log-in, requests, the till, and what everybody meets on every page:
// accessibility by axe, the keyboard, sizes, contrast, weight, and what scripts and other
// sites may not do.
//
// What comes from npm is pinned by package-lock.json and installed into a temporary directory.
// A test skips and says why where Chromium, npm or the registry is missing.
//
// What is checked, and where:
//
//	other sites and origins, requests without one      TestCrossSite TestNoOrigin TestTillPlainHTTP
//	hosts, frames, what is injected, headers           TestHost TestFrame TestInjected TestHeaders
//	console, violations, hosts that pages talk to      every test, at the end of each tab
//	a customer by phone, a sale by keys alone          TestTillPhones TestTillByKeyboard
//	one sale for one form, also of a killed server     TestTillOnce TestTillBackOtherAmount TestTillTwoTabs TestTillKilled
//	the second factor's QR code, which is scanned      TestFactorQR TestFactorScanned
//	enrolment, a voucher's code, the smallest screen   TestTillEnrol TestTillVoucher TestTillSmall
//	accessibility, keyboard, zoom, sizes of targets    TestAxe TestKeyboard TestZoom TestTargets
//	hostile names, themes, forced colours, weight      TestHostileNames TestThemes TestForcedColours TestWeight
//	what browsers do with cookies, origins and Back    TestPlatform…
//
//	SELLO_SCREENSHOTS=DIR  where a failed test leaves pictures of its pages
//	SELLO_PANEL_ALL=1      each page in all combinations of language, theme and width, rather
//	                       than in one of them
package panel
