// Opens a page in Chromium, light and narrow, dark and wide, and prints as JSON what is wrong
// with it: violations of WCAG AA that axe finds, messages of the console, requests beside the
// page's own, and text that does not fit the window. SELLO_TEST_LONG=1 opens it dark and narrow,
// light and wide too.
//
// Usage: node page.mjs CHROMIUM URL DIRECTORY, which gets screenshots
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import puppeteer from 'puppeteer-core'

const [executablePath, url, directory] = process.argv.slice(2)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const wrong = []
const looked = []

const browser = await puppeteer.launch({ executablePath, timeout: 120_000, protocolTimeout: 600_000, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] })
const looks = [['light', 320], ['dark', 1280]]
if (process.env.SELLO_TEST_LONG) looks.push(['dark', 320], ['light', 1280])
for (const [scheme, width] of looks) {
  const name = `${scheme}-${width}`
  const page = await open(name, scheme, width)
  await page.screenshot({ path: join(directory, `${name}.png`) })
  await page.evaluate(() => document.querySelectorAll('details').forEach(details => { details.open = true }))
  await page.evaluate(axe)
  const found = await page.evaluate(() => window.axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] }))
  for (const v of found.violations) {
    wrong.push(`${name}: ${v.id}: ${v.help}: ${v.nodes.length} times, such as ${v.nodes[0].html.slice(0, 200)} ${v.nodes[0].any[0]?.message ?? ''}`)
  }
  looked.push(`${name}: ${found.passes.length} rules of axe ${found.testEngine.version}`)
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  if (beyond > 0) wrong.push(`${name}: ${beyond} pixels wider than the window`)
  await page.close()
}

const page = await open('no scripts', 'light', 1280, false)
const link = await page.$('main a[href^="#"]')
const target = decodeURIComponent((await (await link.getProperty('href')).jsonValue()).split('#')[1])
await link.click()
const top = await page.evaluate(id => document.getElementById(id).getBoundingClientRect().top, target)
if (top < 0 || top > 800) wrong.push(`no scripts: a link left its target at ${top}`)
const details = await page.$('details')
await (await details.$('summary')).click()
if (!await page.evaluate(d => d.open, details)) wrong.push('no scripts: details do not open')
looked.push('no scripts: a link and details')
await browser.close()
console.log(JSON.stringify({ looked, wrong }))

async function open(name, scheme, width, scripts = true) {
  const page = await browser.newPage()
  page.on('console', message => wrong.push(`${name}: console: ${message.text()}`))
  page.on('pageerror', error => wrong.push(`${name}: ${error}`))
  page.on('request', request => { if (request.url().split('#')[0] !== url) wrong.push(`${name}: fetches ${request.url()}`) })
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
  await page.setViewport({ width, height: 800 })
  page.setDefaultTimeout(120_000)
  await page.setJavaScriptEnabled(scripts)
  await page.goto(url)
  return page
}
