// A till's day by the client that openapi-typescript makes of openapi.json.
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

const sello = createClient<paths>({ baseUrl: process.env.SELLO_ORIGIN!, headers: { Authorization: `Bearer ${process.env.SELLO_KEY}` } })

// done returns what an operation gave, and fails with the error's code.
function done<T>(answer: { data?: T, error?: components['schemas']['Error'] }): T {
  assert(answer.data !== undefined, answer.error?.code)
  return answer.data
}

const nobody = done(await sello.GET('/api/v1/customers/lookup', { params: { query: { phone: '5587654321' } } }))
assert.equal(nobody, null)

const customer: components['schemas']['Customer'] = done(await sello.POST('/api/v1/customers', {
  body: { phoneNumber: '5587654321', firstName: 'Lucía', attributes: { talla: 'M' } },
}))
assert.equal(customer.phoneNumber, '+525587654321')

const sell = () => sello.POST('/api/v1/transactions', {
  params: { header: { 'Idempotency-Key': 'venta-1' } },
  body: { customerId: customer.id, totalAmount: 1500, items: [{ sku: 'CAFE', price: 1500, quantity: 1 }] },
})
const sale = done(await sell())
assert(sale.id)
const again = await sell()
assert.deepEqual(done(again), sale)
assert.equal(again.response.headers.get('Idempotency-Replayed'), 'true')

const params = { path: { customerId: customer.id } }
const balance = done(await sello.GET('/api/v1/points/customers/{customerId}/balance', { params }))
assert.equal(balance.balance, sale.balance)

const rewards = done(await sello.GET('/api/v1/rewards', { params: { query: { customerId: customer.id } } }))
const voucher = rewards.data.find(reward => reward.fulfilment === 'Voucher' && reward.available)
assert(voucher)

const redemption = done(await sello.POST('/api/v1/rewards/redeem', { body: { customerId: customer.id, productId: voucher.id } }))
assert.equal(redemption.status, 'Issued')
const used = done(await sello.POST('/api/v1/redemptions/use', { body: { code: redemption.code, transactionId: sale.id } }))
assert.equal(used.status, 'Used')
assert.equal(used.usedBy?.type, 'Key')
const twice = await sello.POST('/api/v1/redemptions/use', { body: { code: redemption.code } })
assert.equal(twice.error?.code, 'redemption_already_used')

// Read the feed to its end. The type of an event narrows its data.
let last: components['schemas']['Event'] | undefined
for (let after = 0, read = -1; read !== after;) {
  read = after
  const page = done(await sello.GET('/api/v1/events', { params: { query: { type: 'redemption.used', after, limit: 100 } } }))
  last = page.data.at(-1) ?? last
  after = page.next
}
assert(last?.type === 'redemption.used' && last.data.id === used.id && last.data.status === 'Used')

const movements = done(await sello.GET('/api/v1/points/customers/{customerId}/movements', { params }))
assert.equal(movements.meta.total, 3)
console.log(movements.data.map(movement => movement.category).join(' '))
