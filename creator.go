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
