package contact_test

import (
	"fmt"

	"sello/internal/contact"
)

// Numbers as people write them, in Mexico, have one normal form, which is its own in every
// country. The prefix 044 was retired in 2019.
func ExamplePhone() {
	for _, text := range []string{"55 1234 5678", "044 55 1234-5678", "+52 (55) 1234 5678", "5512"} {
		fmt.Println(contact.Phone(text, "MX"))
	}
	fmt.Println(contact.Phone("+525512345678", "ES"))
	// Output:
	// +525512345678 true
	// +525512345678 true
	// +525512345678 true
	//  false
	// +525512345678 true
}

func ExampleEmail() {
	fmt.Println(contact.Email(" Ana@Example.COM\n"))
	fmt.Println(contact.Email("ana@localhost")) // its domain has no dot
	// Output:
	// ana@example.com true
	//  false
}
