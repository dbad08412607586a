package main

// A creator is who made a record (contract §16).
type creator struct {
	Type  string // one of the below
	ID    id     // of the API key or the user; else zero
	Actor string // what X-Actor said, which nobody vouches for; of a command the system's user; "" if unknown
}

const (
	byKey     = "Key"
	byUser    = "User" // of the panel
	byImport  = "Import"
	byCommand = "Command"
	bySystem  = "System"
)

// creatorTypes are in the order that the file depends on.
var creatorTypes = []string{byKey, byUser, byImport, byCommand, bySystem}

// maxActor is in characters.
const maxActor = 100

func (c *creator) fields(to *coder) {
	to.word(creatorTypes, &c.Type)
	to.idOrNone(&c.ID)
	to.text(&c.Actor)
}

// keyName is the name of an API key; "" if there is none. It is looked up once in a
// transaction.
func (t *txn) keyName(keyID id) (string, error) {
	if t.byKey != nil && keyID == t.byKey.ID {
		return t.byKey.Name, nil
	}
	if name, known := t.keyNames[keyID]; known {
		return name, nil
	}
	hash, ok, err := t.Get(orgKey('k', t.org).id(keyID))
	if err != nil || !ok || len(hash) != 32 {
		return "", err
	}
	k, err := keyByHash(t.Tx, [32]byte(hash))
	if err != nil || k == nil {
		return "", err
	}
	if t.keyNames == nil {
		t.keyNames = map[id]string{}
	}
	t.keyNames[keyID] = k.Name
	return k.Name, nil
}

// userName is the name of a member of the organization; "" of who is none any more: the log
// and the ledger keep the id alone. It is looked up once in a transaction.
func (t *txn) userName(of id) (string, error) {
	if name, known := t.keyNames[of]; known {
		return name, nil
	}
	m, err := membershipIn(t.Tx, t.org, of)
	if err != nil || m == nil {
		return "", err
	}
	u, err := userByID(t.Tx, of)
	if err != nil || u == nil {
		return "", err
	}
	if t.keyNames == nil {
		t.keyNames = map[id]string{}
	}
	t.keyNames[of] = u.Name
	return u.Name, nil
}
