package main

// A creator is who made a record (contract §16).
type creator struct {
	Type  creatorType
	ID    id     // of the API key or the user; else zero
	Actor string // what X-Actor said, which nobody vouches for; of a command the system's user; "" if unknown
}

type creatorType byte

const (
	byUnknown creatorType = iota // a record of schema 4 or earlier
	byKey
	byUser
	byImport
	byCommand
	bySystem
)

var creatorTypes = [...]string{byKey: "Key", byUser: "User", byImport: "Import", byCommand: "Command", bySystem: "System"}

// maxActor is in characters.
const maxActor = 100

func (c *creator) encode(w *writer) {
	w.byte(byte(c.Type))
	w.idOrNone(c.ID)
	w.text(c.Actor)
}

func (c *creator) decode(r *reader) {
	c.Type = creatorType(r.byte())
	if int(c.Type) >= len(creatorTypes) {
		r.fail()
	}
	c.ID = r.idOrNone()
	c.Actor = r.text()
}

// A createdBy is a creator as clients see it: null for a record that does not say.
type createdBy struct {
	kind        string
	id          id
	name, actor string
}

func (v createdBy) appendJSON(b []byte) []byte {
	if v.kind == "" {
		return append(b, "null"...)
	}
	b = appendJSONString(append(b, `{"type":`...), v.kind)
	b = appendJSONID(append(b, `,"id":`...), idOrNull(v.id))
	b = appendJSONText(append(b, `,"name":`...), orNull(v.name))
	b = appendJSONText(append(b, `,"actor":`...), orNull(v.actor))
	return append(b, '}')
}

func (v createdBy) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

// createdBy names a creator; a key by the name that it has now.
func (t *txn) createdBy(c creator) (createdBy, error) {
	v := createdBy{creatorTypes[c.Type], c.ID, "", c.Actor}
	if c.Type != byKey {
		return v, nil
	}
	var err error
	v.name, err = t.keyName(c.ID)
	return v, err
}

// keyName is the name of an API key; "" if there is none. It is looked up once in a
// transaction.
func (t *txn) keyName(keyID id) (string, error) {
	if keyID == t.by.ID {
		return t.byName, nil
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
