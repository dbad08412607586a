module sello/tools/release

go 1.26
