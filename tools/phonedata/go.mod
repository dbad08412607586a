module sello/tools/phonedata

go 1.26

require github.com/nyaruka/phonenumbers/v2 v2.0.8

require google.golang.org/protobuf v1.36.11 // indirect
