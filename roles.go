package main

import "slices"

// A role says what a user may do in an organization. Roles are fixed.
type role string

const (
	roleOwner     role = "owner"
	roleAdmin     role = "admin"
	roleManager   role = "manager"
	roleCashier   role = "cashier"
	roleViewer    role = "viewer"
	roleDeveloper role = "developer"
)

// roles lists them all, in the order of the columns of permissions.
var roles = []role{roleOwner, roleAdmin, roleManager, roleCashier, roleViewer, roleDeveloper}

// A permission is what a page or a form of the panel needs: a scope of API keys, or a word
// of the same kind for what the API does not have.
type permission string

// usersManage is the permission that the rules below are about.
const usersManage permission = "users:manage"

// Who may open a page beside those with a permission.
const (
	anyone   permission = ""           // whoever is logged in
	everyone permission = "(guest)"    // others too
	operates permission = "(operator)" // whoever runs the server
)

// A grant says how far a role has a permission.
type grant int

const (
	grantNone grant = iota
	grantSome       // within bounds that the domain knows
	grantAll
)

// permissions has the grant of each role. Where it is grantSome, the bound stands beside it.
var permissions = func() map[permission][]grant {
	const no, half, yes = grantNone, grantSome, grantAll
	return map[permission][]grant{ //  owner admin manager cashier viewer developer
		"till":                {yes, yes, yes, yes, no, no},
		"customers:find":      {yes, yes, yes, yes, yes, no},      // by exact phone, e-mail or id
		"customers:read":      {yes, yes, yes, half, yes, no},     // cashier: search with 4 letters or more, 5 hits at a time, contact masked
		"customers:write":     {yes, yes, yes, yes, no, no},       // enrol
		"customers:edit":      {yes, yes, yes, no, no, no},        // contact, and status
		"customers:erase":     {yes, yes, no, no, no, no},         // merge, and erase
		"transactions:write":  {yes, yes, yes, yes, no, no},       // purchases
		"transactions:return": {yes, yes, yes, half, no, no},      // cashier: own sales of today, if the organization lets cashiers
		"transactions:read":   {yes, yes, yes, half, yes, no},     // cashier: own ones of today, and at the till those of 30 days, by their ticket
		"rewards:write":       {yes, yes, yes, yes, no, no},       // redeem
		"redemptions:cancel":  {yes, yes, yes, half, no, no},      // cashier: own ones, within 10 minutes
		"points:write":        {yes, yes, yes, no, no, no},        // by hand
		"statistics:read":     {yes, yes, yes, no, yes, no},       //
		"loyalty:read":        {yes, yes, yes, no, yes, no},       //
		"rewards:read":        {yes, yes, yes, yes, yes, no},      //
		"segments:read":       {yes, yes, yes, no, yes, no},       //
		"config:write":        {yes, yes, no, no, no, no},         //
		"data:export":         {yes, yes, no, no, half, no},       // viewer: if the organization lets viewers
		"data:import":         {yes, yes, no, no, no, no},         //
		"keys:manage":         {yes, yes, no, no, no, yes},        //
		"requests:read":       {yes, yes, no, no, no, yes},        //
		"webhooks:manage":     {yes, yes, no, no, no, yes},        //
		usersManage:           {yes, half, no, no, no, no},        // admin: not owners
		"audit:read":          {yes, yes, half, half, half, half}, // own entries; developer: those of keys too
	}
}()

// may returns how far the role has a permission. What is no role has none.
func (r role) may(p permission) grant {
	grants, i := permissions[p], slices.Index(roles, r)
	if i < 0 || grants == nil {
		return grantNone
	}
	return grants[i]
}

// known reports whether r is a role.
func (r role) known() bool { return slices.Contains(roles, r) }

// within reports whether the role may do nothing that the other one may not.
func (r role) within(other role) bool {
	for p := range permissions {
		if r.may(p) > other.may(p) {
			return false
		}
	}
	return true
}

// mayManage returns an error unless a user with the role may turn a user with the role from
// into one with the role to. No role at all is "": to invite is to turn "" into a role, to
// remove is to turn one into "". self says that the two users are the same.
func (r role) mayManage(from, to role, self bool) error {
	switch grant := r.may(usersManage); {
	case grant == grantNone:
		return errMayNotManage
	case grant == grantSome && (from == roleOwner || to == roleOwner):
		return errOwnersAlone
	case self && from != "" && !to.within(from):
		return errOwnRole
	}
	return nil
}

var (
	errMayNotManage = newPeopleError("users_manage_required", "", "Solo quien administra el equipo puede hacer esto")
	errOwnersAlone  = newPeopleError("owners_alone", "role", "Solo un propietario puede cambiar a otro propietario")
	errOwnRole      = newPeopleError("own_role", "role", "Nadie puede ampliar su propio rol")
	errLastOwner    = newPeopleError("last_owner", "", "Es el último propietario activo de la organización: antes hace falta otro")
	errRoleUnknown  = newPeopleError("role_unknown", "role", "El rol no existe; hay: "+roleList())
)

// roleList lists the roles for an error.
func roleList() string { return alternatives(roleNames()) }

func roleNames() (names []string) {
	for _, r := range roles {
		names = append(names, string(r))
	}
	return names
}
