package main

import (
	"maps"
	"slices"
	"strings"
)

// What the headings of other systems' exports mean (contract §31). testdata/presets has a file of
// each, and its README says where the headings were seen. A system is here only with those of a
// real export.

// presets are, by kind of import and name of a system, the columns that its headings name. All
// other headings are left out, and the output lists them.
//
// Shopify: jdiaz-ops/test1234 src/lib/shopify-customers-csv.ts; laplace-live/shopify-csv-converter
// src/types/index.d.ts. Square: byesaw13/doveapp lib/square/csv-import.ts; aditya2kx/jarvis
// skills/square_api/export.py. WooCommerce: woocommerce/woocommerce
// plugins/woocommerce/src/Admin/API/Reports/Customers/Controller.php.
var presets = map[string]map[string]map[string]string{
	importCustomers: {
		"shopify": {
			"Customer ID": "externalId", "First Name": "firstName", "Last Name": "lastName", "Email": "email", "Accepts Email Marketing": "marketing",
			"Phone": "phoneNumber", "Default Address Phone": phoneNumber2,
		},
		"square": {
			"Square Customer ID": "externalId", "First Name": "firstName", "Last Name": "lastName", "Email Address": "email", "Phone Number": "phoneNumber",
			"Birthday": "birthDate", "Email Subscription Status": "marketing",
		},
		"woocommerce": {"Name": "firstName", "Sign Up": "createdAt", "Email": "email", "Billing Phone": "phoneNumber", "Shipping Phone": phoneNumber2},
	},
	importSales: {
		"shopify": {
			"Name": "externalId", "Created at": "createdAt", "Email": "email", "Total": "totalAmount",
			"Lineitem sku": "sku", "Lineitem quantity": "quantity", "Lineitem price": "price",
		},
		"square": {
			"Transaction ID": "externalId", "Date": "createdAt", "Time": clockTime, "Customer ID": "customerExternalId",
			"Event Type": "type", "Total Collected": "totalAmount",
		},
	},
}

// fromFlag is -from, of a kind of import.
func fromFlag(c *invocation, kind string) {
	names := slices.Sorted(maps.Keys(presets[kind]))
	list := strings.Join(names, ", ")
	c.set.Func("from", "`sistema` del que es la exportación: "+list+"; lo que no se usa de ella se dice al final", func(name string) error {
		if !slices.Contains(names, name) {
			return usageErrorf("%s", list)
		}
		c.system = name
		return nil
	})
	c.chooses("from", names...)
}

// use takes the headings as those of a named system, unless the name is "".
func (h *fileHeadings) use(system string) {
	if system == "" {
		return
	}
	h.preset = map[string]string{}
	for heading, name := range presets[h.kind][system] {
		h.preset[exactKey(heading)] = name
	}
}

// leftOut lists the headings that a system's file has and that are not used.
func (h *fileHeadings) leftOut(list, taken []string) (names []string) {
	if h.preset == nil {
		return nil
	}
	start := 0
	if startsRejects(list) {
		start = len(rejectColumns)
	}
	for i := start; i < len(list); i++ {
		if taken[i] == "" && list[i] != "" {
			names = append(names, list[i])
		}
	}
	return names
}
