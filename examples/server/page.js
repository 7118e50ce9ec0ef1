// @ts-check
// Sends the forms as JSON and shows the devices. The server renders who is logged in: after a change the page is
// loaded anew, so that it cannot show anything else than what the server thinks.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} id
 * @returns {HTMLElementTagNameMap[T]}
 */
const element = (tag, id) => {
  const found = document.getElementById(id)
  if (found?.localName !== tag) throw new Error(`no <${tag} id="${id}">`)
  return /** @type {HTMLElementTagNameMap[T]} */ (found)
}

const MESSAGES = {
  expired: 'Your session has expired or was ended. Please log in again.',
  offline: 'The server does not answer. Check your connection and try again.',
  store_unavailable: 'Sessions cannot be reached just now. Nothing has changed; try again in a moment.',
  sessions_not_ended:
    'Your password is changed, but your other devices could not be logged out yet. Press the button again to finish.',
  insecure: 'Logging in works only over HTTPS, or on the computer that runs this service.',
  not_fresh:
    'Changing the password needs a login with your password in the last 15 minutes. Please log out, log in and try again.',
  stale_login: 'The password was changed a moment ago. Please log in with the new one.',
}

const notice = element('p', 'notice')

/**
 * Loads the page anew and shows a message there.
 * @param {string} message
 */
function reload(message) {
  try {
    sessionStorage.setItem('notice', message)
  } catch {}
  location.replace('/')
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<{ ok: boolean, status: number, body: any }>}
 */
async function call(method, path, body) {
  try {
    const response = await fetch(path, {
      method,
      ...(body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
    })
    return { ok: response.ok, status: response.status, body: await response.json() }
  } catch {
    return { ok: false, status: 0, body: { error: 'offline', message: MESSAGES.offline } }
  }
}

/** @param {{ error: string, message: string }} body */
const explain = ({ error, message }) =>
  Object.hasOwn(MESSAGES, error) ? MESSAGES[/** @type {keyof typeof MESSAGES} */ (error)] : message

/**
 * @param {HTMLFormElement} form
 * @param {(fields: FormData) => Promise<void>} send
 */
function onSubmit(form, send) {
  form.addEventListener('submit', async event => {
    event.preventDefault()
    // Busy and not disabled: a disabled button would lose the focus.
    if (form.ariaBusy === 'true') return
    form.ariaBusy = 'true'
    await send(new FormData(form)).finally(() => {
      form.ariaBusy = 'false'
    })
  })
}

/**
 * @param {HTMLElement} place
 * @param {string} message
 * @param {HTMLInputElement} [input] the field to correct
 */
function showError(place, message, input) {
  notice.textContent = ''
  place.textContent = ''
  // In a later turn, so that the same message is announced a second time.
  setTimeout(() => {
    place.textContent = message
  }, 50)
  if (!input) return
  input.ariaInvalid = 'true'
  input.setAttribute('aria-errormessage', place.id)
  input.addEventListener('input', () => input.removeAttribute('aria-invalid'), { once: true })
  input.focus()
  input.select()
}

/**
 * "Chromium on Linux" from a user agent; what is not recognised is shown as it is.
 * @param {string} label
 */
function deviceName(label) {
  /** @param {[RegExp, string][]} names */
  const first = names => names.find(([pattern]) => pattern.test(label))?.[1]
  const browser = first([
    [/\bEdg/, 'Edge'],
    [/\bOPR\//, 'Opera'],
    [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
    [/\bChrome\/|\bCriOS\/|Chrom/, 'Chrome'],
    [/\bSafari\//, 'Safari'],
    [/^curl\//, 'curl'],
  ])
  const system = first([
    [/\bAndroid\b/, 'Android'],
    [/\biPhone\b/, 'iPhone'],
    [/\biPad\b/, 'iPad'],
    [/\bWindows\b/, 'Windows'],
    [/\bMac OS X\b/, 'Mac'],
    [/\bCrOS\b/, 'ChromeOS'],
    [/\bLinux\b/, 'Linux'],
  ])
  if (browser) return system ? `${browser} on ${system}` : browser
  return label.slice(0, 60) || 'Unknown device'
}

/** @param {number} instant epoch ms */
function ago(instant) {
  const minutes = Math.round((instant - Date.now()) / 60_000)
  if (minutes > -1) return 'just now'
  const relative = new Intl.RelativeTimeFormat('en')
  if (minutes > -60) return relative.format(minutes, 'minute')
  if (minutes > -60 * 24) return relative.format(Math.round(minutes / 60), 'hour')
  return relative.format(Math.round(minutes / 60 / 24), 'day')
}

/** @param {{ key: string, label: string, createdAt: number, seenAt: number, current: boolean }} session */
function deviceItem(session) {
  const name = deviceName(session.label)
  const item = document.createElement('li')
  const about = item.appendChild(document.createElement('div'))
  const title = about.appendChild(document.createElement('strong'))
  title.textContent = name
  title.title = session.label
  const times = about.appendChild(document.createElement('p'))
  times.className = 'hint'
  times.textContent = `Active ${ago(session.seenAt)}, logged in ${ago(session.createdAt)}`
  if (session.current) {
    const badge = item.appendChild(document.createElement('span'))
    badge.className = 'badge'
    badge.textContent = 'This device'
    return item
  }
  const button = item.appendChild(document.createElement('button'))
  button.className = 'button'
  button.type = 'button'
  button.textContent = 'Log out'
  button.ariaLabel = `Log out ${name}, active ${ago(session.seenAt)}`
  button.addEventListener('click', () => endDevice(session.key, name))
  return item
}

async function showDevices() {
  const answer = await call('GET', '/sessions')
  if (answer.status === 401) return reload(MESSAGES.expired)
  const list = element('ul', 'devices')
  list.ariaBusy = 'false'
  if (!answer.ok) return showError(element('p', 'devices-error'), explain(answer.body))
  element('p', 'devices-error').textContent = ''
  list.replaceChildren(...answer.body.map(deviceItem))
}

/**
 * @param {string} key
 * @param {string} name
 */
async function endDevice(key, name) {
  const answer = await call('DELETE', `/sessions/${key}`)
  if (answer.status === 401) return reload(MESSAGES.expired)
  // 404: it has ended in the meantime, which is what was wanted.
  if (!answer.ok && answer.status !== 404) return showError(element('p', 'devices-error'), explain(answer.body))
  await showDevices()
  notice.textContent = `${name} has been logged out.`
  element('h2', 'devices-title').focus()
}

/** How far the server's clock is ahead of this one, in ms. */
let ahead = 0

/**
 * "in 29 minutes", "4 minutes ago".
 * @param {number} instant epoch ms of the server
 */
function fromNow(instant) {
  const seconds = Math.round((instant - Date.now() - ahead) / 1000)
  const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
  const size = Math.abs(seconds)
  if (size < 90) return relative.format(seconds, 'second')
  if (size < 90 * 60) return relative.format(Math.round(seconds / 60), 'minute')
  return relative.format(Math.round(seconds / 3600), 'hour')
}

const TIMES = /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll('time[data-time]'))

function tellTimes() {
  for (const time of TIMES) {
    if (time.dateTime === '') continue
    const instant = Date.parse(time.dateTime)
    time.title = new Date(instant).toLocaleString()
    time.textContent = fromNow(instant)
  }
  for (const [id, name] of [
    ['idle', 'expiresAt'],
    ['absolute', 'absoluteExpiresAt'],
  ]) {
    const time = /** @type {HTMLTimeElement} */ (document.querySelector(`time[data-time=${name}]`))
    element('progress', /** @type {string} */ (id)).value = Math.max(0, Date.parse(time.dateTime) - Date.now() - ahead)
  }
}

async function lookAtSession() {
  const answer = await call('GET', '/session')
  if (!answer.ok) return showError(element('p', 'session-error'), explain(answer.body))
  if (answer.body === null) return reload(MESSAGES.expired)
  element('p', 'session-error').textContent = ''
  ahead = answer.body.now - Date.now()
  for (const time of TIMES) {
    const instant = answer.body[/** @type {string} */ (time.dataset.time)]
    if (instant !== null) time.dateTime = new Date(instant).toISOString()
  }
  const { seenAt, expiresAt, boundAt } = answer.body
  if (boundAt !== null)
    element('span', 'bound').textContent = 'Bound to this device: a copied cookie is soon worth nothing. Since'
  element('progress', 'idle').max = expiresAt - seenAt
  tellTimes()
}

onSubmit(element('form', 'rotate'), async () => {
  const answer = await call('POST', '/session/rotate')
  if (answer.status === 401) return reload(MESSAGES.expired)
  if (!answer.ok) return showError(element('p', 'session-error'), explain(answer.body))
  await lookAtSession()
  notice.textContent = 'The session goes on under a new ID. The old one ends in half a minute.'
})

onSubmit(element('form', 'invalidate-all'), async () => {
  const answer = await call('DELETE', '/sessions')
  if (answer.ok || answer.status === 401) return reload('You are logged out on all your devices.')
  showError(element('p', 'devices-error'), explain(answer.body))
})

onSubmit(element('form', 'login'), async fields => {
  const answer = await call('POST', '/login', {
    username: fields.get('username'),
    password: fields.get('password'),
    remember: fields.has('remember'),
  })
  if (answer.ok) return reload('')
  const message = answer.body.error === 'invalid_credentials' ? 'Wrong name or password.' : explain(answer.body)
  showError(element('p', 'login-error'), message, element('input', 'password'))
})

onSubmit(element('form', 'change'), async fields => {
  const answer = await call('POST', '/password', {
    oldPassword: fields.get('oldPassword'),
    newPassword: fields.get('newPassword'),
  })
  if (answer.ok) return reload('Your password is changed. All your other devices have been logged out.')
  if (answer.body.error === 'unauthenticated') return reload(MESSAGES.expired)
  if (answer.body.error === 'invalid_credentials')
    return showError(element('p', 'change-error'), 'The old password is not right.', element('input', 'old-password'))
  showError(element('p', 'change-error'), explain(answer.body))
})

if (document.body.dataset.state === 'in') {
  ahead = Number(element('dl', 'session').dataset.now) - Date.now()
  tellTimes()
  setInterval(tellTimes, 1000)
  // A browser registers its key while the page after the login is loading.
  if (document.querySelector('time[data-time=boundAt][datetime=""]')) setTimeout(lookAtSession, 2000)
  setInterval(() => {
    if (document.visibilityState === 'visible') lookAtSession()
  }, 30_000)
  showDevices()
  // Back on this tab after a while: is the session still there?
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState !== 'visible') return
    showDevices()
    lookAtSession()
  })
}
// A page from the back/forward cache may show a session that has ended.
addEventListener('pageshow', event => {
  if (event.persisted) location.reload()
})

const message = sessionStorage.getItem('notice')
sessionStorage.removeItem('notice')
if (message) {
  notice.textContent = message
  notice.focus()
} else if (document.body.dataset.state === 'out') {
  const { value } = element('input', 'username')
  element('input', value === '' ? 'username' : 'password').focus()
}
