// What scripts add to the panel. Every page works without them.
'use strict'
;(() => {
  const all = selector => Array.from(document.querySelectorAll(selector))
  const parse = text => new DOMParser().parseFromString(text, 'text/html')

  // A form is sent once. Its button says so, by data-busy of the button, the form or the
  // body, until the next page. data-again exempts a form whose answer is a download.
  const sent = new Map()
  const changed = new Set()
  const giveBack = form => {
    const { button, text, timer } = sent.get(form) || {}
    clearTimeout(timer)
    if (button) {
      button.disabled = false
      button.textContent = text
    }
    sent.delete(form)
  }
  addEventListener('submit', event => {
    const form = event.target
    if (event.defaultPrevented || !/^post$/i.test(form.getAttribute('method')) || 'again' in form.dataset) return
    if (sent.has(form)) return event.preventDefault()
    const button = event.submitter || form.querySelector('button:not([type=button])')
    const text = button && button.textContent
    changed.delete(form)
    sent.set(form, { button, text, timer: setTimeout(giveBack, 30000, form) }) // the server's longest answer; or Stop was pressed
    setTimeout(() => { // when the button's own name and value are in the request
      if (!button || !sent.has(form)) return
      button.disabled = true
      button.textContent = button.dataset.busy || form.dataset.busy || document.body.dataset.busy || text
    })
  })
  addEventListener('pageshow', event => {
    if (event.persisted) location.reload() // a page of a session that may have ended
    sent.forEach((_, form) => giveBack(form))
  })

  // data-warn: a form that is not left by accident once something is typed.
  addEventListener('input', event => {
    const form = event.target.form
    if (form && 'warn' in form.dataset) changed.add(form)
  })
  addEventListener('beforeunload', event => {
    if (!changed.size) return
    event.preventDefault()
    event.returnValue = ''
  })

  // Some scanners end with a tab in place of Enter: after a member code, whose sum is 0
  // (internal/membercode), it sends the search.
  const isCode = text => {
    const plain = text.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1')
    const times = sum => sum << 1 ^ (sum & 16 && 37)
    const values = Array.from(plain.slice(1), symbol => '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(symbol))
    return plain[0] === 'M' && values.length === 8 && !values.includes(-1) && values.reduceRight((sum, value) => times(sum) ^ value, 0) === 0
  }
  addEventListener('keydown', event => {
    const field = event.target
    if (event.key !== 'Tab' || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey || field.type !== 'search') return
    if (!field.form.matches('[action="/panel/caja"], [action="/panel/clientes"]') || !isCode(field.value)) return
    event.preventDefault()
    field.form.requestSubmit()
  })

  // data-copy: a button, hidden without scripts, that copies the field of that id and then
  // says data-done.
  all('[data-copy]').forEach(button => {
    const field = document.getElementById(button.dataset.copy)
    if (!field) return
    const text = button.textContent
    const done = () => {
      button.textContent = button.dataset.done || text
      setTimeout(() => { button.textContent = text }, 2000)
    }
    const old = () => { // plain HTTP has no clipboard
      field.select ? field.select() : getSelection().selectAllChildren(field)
      if (document.execCommand('copy')) done()
    }
    button.hidden = false
    button.addEventListener('click', () => {
      if (!navigator.clipboard) return old()
      navigator.clipboard.writeText(field.value || field.textContent).then(done, old)
    })
  })

  // data-poll: a task. The page is read again every 2 s, and the element of the same id takes
  // the place of this one, until that has no data-poll, the page is gone or the session has
  // ended. Its header tells the server that nobody may be there: the session ends as if idle.
  const poll = async id => {
    const element = document.getElementById(id)
    if (!element || !('poll' in element.dataset)) return
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { redirect: 'manual', cache: 'no-store', headers: { 'Sello-Poll': '1' } })
        if (!answer.ok) return
        const next = parse(await answer.text()).getElementById(id)
        if (!next) return
        element.replaceWith(document.adoptNode(next))
      } catch (_) {} // no network: asked again
    }
    setTimeout(poll, 2000, id)
  }
  all('[data-poll]').forEach(element => setTimeout(poll, 2000, element.id))
})()
