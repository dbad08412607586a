// Package contact normalizes e-mail addresses and phone numbers as people type them.
// Two texts that mean the same address or number have the same normal form, which is
// its own normal form.
//
// Both functions are pure and may be called by several goroutines. They need no
// network: phones are judged by the numbering plans in phonedata.txt, which
// tools/phonedata derives from libphonenumber (see NOTICE).
package contact
