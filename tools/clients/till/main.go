//go:build generated

// Till lives a till's day by the client that oapi-codegen makes of openapi.json. TestOapiCodegen
// puts the client beside this file and runs it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"

	_ "github.com/oapi-codegen/runtime" // for the client
)

func main() {
	log.SetFlags(log.Lshortfile)
	ctx := context.Background()
	sello, err := NewClientWithResponses(os.Getenv("SELLO_ORIGIN"), WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("SELLO_KEY"))
		return nil
	}))
	check(err)

	phone, name := "5587654321", "Lucía"
	nobody, err := sello.LookupCustomerWithResponse(ctx, &LookupCustomerParams{Phone: &phone})
	check(err)
	must(nobody.StatusCode() == http.StatusOK && string(bytes.TrimSpace(nobody.Body)) == "null", nobody.Body)

	var size Attributes_AdditionalProperties
	check(size.FromAttributes0("M"))
	enrolled, err := sello.CreateCustomerWithResponse(ctx, nil, CustomerInput{PhoneNumber: &phone, FirstName: &name, Attributes: &Attributes{"talla": size}})
	check(err)
	must(enrolled.JSON201 != nil && *enrolled.JSON201.PhoneNumber == "+525587654321", enrolled.Body)
	customer := enrolled.JSON201

	key := "venta-1"
	sell := func() *RegisterTransactionResponse {
		sold, err := sello.RegisterTransactionWithResponse(ctx, &RegisterTransactionParams{IdempotencyKey: &key}, TransactionInput{
			CustomerId: customer.Id.String(), TotalAmount: 1500, Items: &[]Item{{Sku: "CAFE", Price: 1500, Quantity: 1}},
		})
		check(err)
		must(sold.JSON201 != nil, sold.Body)
		return sold
	}
	first, again := sell(), sell()
	must(bytes.Equal(first.Body, again.Body) && again.HTTPResponse.Header.Get("Idempotency-Replayed") == "true", again.Body)
	sale := first.JSON201

	balance, err := sello.GetBalanceWithResponse(ctx, customer.Id.String(), nil)
	check(err)
	must(balance.JSON200 != nil && balance.JSON200.Balance == sale.Balance, balance.Body)

	id := customer.Id.String()
	rewards, err := sello.ListRewardsWithResponse(ctx, &ListRewardsParams{CustomerId: &id})
	check(err)
	must(rewards.JSON200 != nil, rewards.Body)
	i := slices.IndexFunc(rewards.JSON200.Data, func(r Reward) bool { return r.Fulfilment == Voucher && *r.Available })
	must(i >= 0, rewards.Body)
	voucher := rewards.JSON200.Data[i]

	redeemed, err := sello.RedeemRewardWithResponse(ctx, nil, RedeemInput{CustomerId: id, ProductId: voucher.Id.String()})
	check(err)
	must(redeemed.JSON201 != nil && redeemed.JSON201.Balance == sale.Balance-voucher.PointsCost, redeemed.Body)

	used, err := sello.UseRedemptionWithResponse(ctx, nil, UseInput{Code: redeemed.JSON201.Code})
	check(err)
	must(used.JSON200 != nil && used.JSON200.Status == RedemptionStatusUsed && *used.JSON200.Effect.Amount == 50, used.Body)
	twice, err := sello.UseRedemptionWithResponse(ctx, nil, UseInput{Code: redeemed.JSON201.Code})
	check(err)
	must(twice.JSON409 != nil && twice.JSON409.Code == "redemption_already_used", twice.Body)

	kind, many := "redemption.used", 100
	var last Event
	for after, read := 0, -1; read != after; { // to the end of the feed
		read = after
		events, err := sello.ListEventsWithResponse(ctx, &ListEventsParams{Type: &kind, After: &read, Limit: &many})
		check(err)
		must(events.JSON200 != nil, events.Body)
		if n := len(events.JSON200.Data); n > 0 {
			last = events.JSON200.Data[n-1]
		}
		after = events.JSON200.Next
	}
	event, err := last.AsRedemptionEvent()
	check(err)
	must(event.Type == RedemptionEventTypeRedemptionUsed && event.Data.Id == used.JSON200.Id, []byte(event.Data.Code))

	movements, err := sello.ListMovementsWithResponse(ctx, id, nil)
	check(err)
	must(movements.JSON200 != nil && movements.JSON200.Meta.Total == 3, movements.Body)
	for i, m := range movements.JSON200.Data {
		if i > 0 {
			fmt.Print(" ")
		}
		fmt.Print(m.Category)
	}
	fmt.Println()
}

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

// must ends the program where an answer is not as it should be.
func must(ok bool, answer []byte) {
	if !ok {
		log.Output(2, string(answer))
		os.Exit(1)
	}
}
