//go:build !postgres

package main

import "errors"

func startCluster(...string) (*cluster, error) {
	return nil, errors.New("-postgres is there with a tag alone: go run -tags postgres ./bench -postgres")
}
