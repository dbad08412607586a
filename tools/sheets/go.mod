module sello/tools/sheets

go 1.26
