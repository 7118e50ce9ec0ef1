// A browser with several tabs, and a model of what its user may see. Requests of one round are sent at once; the model
// says after each answer whether it was possible: a session is lost only if it certainly lived, and revived only if it
// certainly had ended. In between (an outage, a logout-everywhere under way) either answer is right.
import { type Failure, type Reply, type ServiceNode, send } from './nodes.ts'
import { type Account, type Ending, LATE, type Users } from './users.ts'

/** Lives of sessions, in ms. */
export interface Lives {
  readonly idle: number
  readonly absolute: number
}

/** What all browsers share, and where they tell what they met. */
export interface Scene {
  readonly nodes: readonly ServiceNode[]
  readonly users: Users
  readonly lives: Lives
  /** When the database was not there: a touch may have failed then. */
  readonly outages: readonly { readonly from: number; until: number }[]
  readonly random: () => number
  readonly statuses: Map<string, number>
  readonly durations: number[]
  /** How many answers the model could call right or wrong, and what else there was. */
  readonly counts: {
    requests: number
    judged: number
    refused: number
    cut: number
    aborted: number
    retried: number
    writes: number
    unknown: number
    logIns: number
    logOuts: number
    everywhere: number
    unavailable: number
    /** Of these, where the database was there all the time. */
    unexplained: number
  }
  readonly violations: string[]
}

interface Sent {
  readonly from: number
  readonly until: number
  readonly outcome: Reply | Failure
}

const SLACK = 1000
const TOKEN = 'remember_token'

const isReply = (outcome: Reply | Failure): outcome is Reply => typeof outcome === 'object'

/** What is known of the session behind the cookie. */
interface Known {
  account: Account
  /** It began at the earliest then, and existed at the latest then, epoch ms. */
  readonly begun: number
  readonly since: number
  /** It was used at least then, as far as the store knows, and at most then. */
  seen: number
  used: number
  /** What ended before this moment has not ended it. */
  cleared: number
  /** The user asked to be remembered, and nothing ended that. */
  remembered: boolean
  /** What the counter may be; null where a remember token may have begun another session. */
  counter: { min: number; max: number } | null
  /** Writes of which it is not known whether they happened. */
  unknownWrites: number
}

export class Browser {
  readonly #scene: Scene
  readonly #name: string
  readonly #jar = new Map<string, string>()
  /** 'out': certainly not logged in. 'unknown': an answer is missing. */
  #state: Known | 'out' | 'unknown' = 'out'
  #account: Account
  /** Until when one of its requests may be under way, epoch ms. */
  #last = 0

  constructor(scene: Scene, index: number) {
    this.#scene = scene
    this.#name = `browser ${index}`
    this.#account = this.#pick(scene.users.accounts)
  }

  /** Whether it holds a remember token. */
  get isRemembered(): boolean {
    return this.#jar.has(TOKEN)
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#scene.random() * list.length)]!
  }

  #complain(what: string): void {
    this.#scene.violations.push(`${new Date().toISOString()} ${this.#name}: ${what}`)
  }

  async #send(
    method: string,
    path: string,
    options: { body?: unknown; abortAfter?: number; node?: ServiceNode } = {},
  ): Promise<Sent> {
    const scene = this.#scene
    const cookie = [...this.#jar].map(pair => pair.join('=')).join('; ')
    const { body, abortAfter } = options
    let node = options.node ?? this.#pick(scene.nodes)
    // Whatever was sent before may have used the session.
    if (typeof this.#state !== 'string') this.#state.used = Math.max(this.#state.used, this.#last)
    const from = Date.now()
    for (let attempt = 0; ; attempt++) {
      const begun = performance.now()
      const wasStopping = node.isStopping
      scene.counts.requests++
      const outcome = await send(node, { method, path, cookie, agent: this.#name, body, abortAfter })
      if (isReply(outcome)) {
        scene.durations.push(performance.now() - begun)
        const { status, cookies } = outcome
        const name = `${method} ${path.replace(/(?<=^\/sessions\/).+/, 'KEY')} ${status}`
        scene.statuses.set(name, (scene.statuses.get(name) ?? 0) + 1)
        if (status === 503) scene.counts.unavailable++
        if (status >= 500 && status !== 503) this.#complain(`${name}: ${JSON.stringify(outcome.body)}`)
        this.#keep(cookies)
      } else {
        if (outcome === 'silent') this.#complain(`${method} ${path} was not answered`)
        else scene.counts[outcome]++
        const mayFail = wasStopping || node.isStopping
        if ((outcome === 'refused' || outcome === 'cut') && !mayFail)
          this.#complain(`${method} ${path}: the connection was ${outcome}, and the node was not stopping`)
        // Nothing received it, or nothing depends on whether it was received.
        if ((outcome === 'refused' || (outcome === 'cut' && method === 'GET')) && attempt < 3) {
          scene.counts.retried++
          node = scene.nodes.find(other => other !== node && !other.isStopping) ?? node
          continue
        }
      }
      const until = Date.now()
      if (isReply(outcome) && outcome.status === 503 && this.#isQuiet({ from, until })) scene.counts.unexplained++
      // What was not answered may still be under way.
      this.#last = Math.max(this.#last, isReply(outcome) ? until : until + LATE)
      return { from, until, outcome }
    }
  }

  #keep(lines: readonly string[]): void {
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/; Max-Age=0(;|$)/i.test(line)) this.#jar.delete(name)
      else this.#jar.set(name, value)
    }
  }

  /** Whether an ending may have met this session at a moment until `at`: another browser's, or one of its own that failed. */
  #mayBeEnded({ account, begun, cleared }: Known, at: number): boolean {
    return account.endings.some(
      ({ from, until, certain, by }) => !(by === this && certain) && from <= at && until >= begun && until > cleared,
    )
  }

  /** Whether the remember token certainly still works: what ended one session of the user may have ended its series. */
  #isRememberedAt(known: Known, at: number): boolean {
    const { endings } = known.account
    const mayHaveLost = endings.some(({ from, until, one }) => one && from <= at && until >= known.begun)
    return known.remembered && !mayHaveLost && !this.#mayBeEnded(known, at)
  }

  /** Whether the session itself, without a remember token, certainly lived until then. */
  #sessionLives(known: Known, at: number): boolean {
    const { idle, absolute } = this.#scene.lives
    return at < known.seen + idle - SLACK && at < known.begun + absolute - SLACK && !this.#mayBeEnded(known, at)
  }

  #livesAt(at: number): boolean {
    const known = this.#state
    if (typeof known === 'string') return false
    return this.#sessionLives(known, at) || this.#isRememberedAt(known, at)
  }

  #isOverAt(at: number): boolean {
    const known = this.#state
    if (typeof known === 'string') return known === 'out'
    const { idle, absolute } = this.#scene.lives
    const isEnded = known.account.endings.some(
      ({ from, until, certain, by }) => by !== this && by !== null && certain && from >= known.since && until <= at,
    )
    const isExpired = !this.#jar.has(TOKEN) && (at > known.used + idle + 1 || at > known.since + absolute + 1)
    return isEnded || isExpired
  }

  /** Judges one answer about who is logged in. `mayEnd`: a request beside it ends the session. */
  #judge(found: string | null, { from, until }: Sent, mayEnd: boolean): void {
    const lives = !mayEnd && this.#livesAt(until)
    const isOver = this.#isOverAt(from)
    if (lives || isOver) this.#scene.counts.judged++
    if (found === null && lives)
      this.#complain(`was logged out, and nothing had ended the session (${this.#describe()})`)
    if (found !== null && isOver)
      this.#complain(`is logged in as ${found}, and the session had ended (${this.#describe()})`)
    if (found !== null && found !== this.#account.name)
      this.#complain(`is logged in as ${found}, and logged in as ${this.#account.name}`)
  }

  #describe(): string {
    const state = this.#state
    if (typeof state === 'string') return state
    const { account, ...rest } = state
    return JSON.stringify({
      now: Date.now(),
      user: account.name,
      ...rest,
      endings: account.endings.slice(-3).map(({ by, ...ending }) => ({ ...ending, own: by === this })),
    })
  }

  /**
   * What an answer without a user says. A logout that failed, as the database was away, is known to the node that it came to:
   * there the token begins no session, at the other one it may.
   */
  get #isOut(): 'out' | 'unknown' {
    return this.#jar.has(TOKEN) ? 'unknown' : 'out'
  }

  /** Whether the database was there all the time. */
  #isQuiet({ from, until }: Pick<Sent, 'from' | 'until'>): boolean {
    return !this.#scene.outages.some(outage => outage.from <= until && outage.until >= from)
  }

  /** What an answer about who is logged in has taught. */
  #learn(found: string | null, sent: Sent): void {
    const { from, until } = sent
    if (found === null) {
      this.#state = this.#isOut
      return
    }
    const touched = from - this.#scene.lives.idle / 10
    if (typeof this.#state === 'string')
      this.#state = {
        account: this.#account,
        begun: 0,
        since: until,
        seen: 0,
        used: this.#last,
        cleared: from,
        remembered: false,
        counter: null,
        unknownWrites: 5,
      }
    const known = this.#state
    if (this.#isQuiet(sent)) known.seen = Math.max(known.seen, touched)
    known.cleared = Math.max(known.cleared, from)
  }

  /**
   * Several tabs at once: each reads, or counts up. With `beside` a request that writes to the session itself goes with
   * them, and its outcome is answered.
   */
  async #tabs(
    tabs: readonly ('read' | 'count' | 'abort')[],
    beside?: { method: string; path: string; ends: boolean },
  ): Promise<Sent | null> {
    const known = typeof this.#state === 'string' ? null : this.#state
    const wasSure = known !== null && this.#sessionLives(known, Date.now())
    const base = known?.counter?.min ?? 0
    const writes = tabs.filter(tab => tab === 'count').length
    if (known?.counter) known.counter.max += writes
    const main = beside ? this.#send(beside.method, beside.path) : null
    const sent = await Promise.all(
      tabs.map(async tab => {
        const abortAfter = tab === 'abort' ? Math.floor(this.#scene.random() * 30) : undefined
        const one = await this.#send(tab === 'count' ? 'POST' : 'GET', '/count', {
          ...(abortAfter !== undefined && { abortAfter }),
        })
        return { tab, ...one }
      }),
    )
    const mainSent = await main
    const mayEnd = beside?.ends === true
    const seen: number[] = []
    let acknowledged = 0
    let last: { found: string | null; sent: Sent } | null = null
    for (const one of sent) {
      const { tab, outcome } = one
      if (!isReply(outcome) || outcome.status === 503) {
        if (tab === 'count') {
          this.#scene.counts.unknown++
          if (known) known.unknownWrites++
        }
        continue
      }
      const { status, body } = outcome
      const found = status === 200 && body !== null ? body.name : null
      this.#judge(found, one, mayEnd)
      if (found !== null) {
        if (tab === 'count') {
          acknowledged++
          seen.push(body.count)
        }
        // The counter of a session that certainly was the same all the time.
        const isSame = known !== null && wasSure && this.#sessionLives(known, one.until)
        if (known?.counter && isSame && !mayEnd) {
          const { max } = known.counter
          const min = tab === 'count' ? base + 1 : base
          if (body.count < min)
            this.#complain(
              `acknowledged writes were lost: the counter is ${body.count}, not ${min} or more (${this.#describe()})`,
            )
          if (body.count > max) this.#complain(`the counter is ${body.count}, and at most ${max} writes were sent`)
        }
      }
      if (last === null || one.until > last.sent.until) last = { found, sent: one }
    }
    this.#scene.counts.writes += acknowledged
    const stillSure = known !== null && wasSure && this.#sessionLives(known, Date.now())
    if (stillSure && new Set(seen).size < seen.length)
      this.#complain(`two writes were acknowledged with the same counter: ${seen}`)
    if (known?.counter && stillSure) known.counter.min = base + acknowledged
    else if (known) known.counter = null
    if (mayEnd || last === null) return mainSent
    // Of several answers all about one moment: one that found nobody may be older than one that found the user.
    const answers = sent.filter(one => isReply(one.outcome) && one.outcome.status !== 503)
    const agreed = answers.every(one => {
      const { status, body } = one.outcome as Reply
      return (status === 200 && body !== null ? body.name : null) === last.found
    })
    if (agreed) this.#learn(last.found, last.sent)
    else this.#state = 'unknown'
    this.#relearnCounter(last, sent)
    return mainSent
  }

  /** Where the counter is not known, a single read tells it. */
  #relearnCounter(last: { found: string | null }, sent: readonly { tab: string; outcome: Reply | Failure }[]): void {
    const known = this.#state
    if (typeof known === 'string' || known.counter !== null || sent.length !== 1 || last.found === null) return
    const { outcome } = sent[0]!
    if (!isReply(outcome) || outcome.body?.count === undefined) return
    const { count } = outcome.body
    known.counter = { min: count, max: count + known.unknownWrites }
  }

  async #logIn(): Promise<void> {
    const scene = this.#scene
    const account = this.#pick(scene.users.accounts)
    const remember = scene.random() < 0.3
    const isWrong = scene.random() < 0.1
    const password = isWrong ? 'not the password' : account.password
    const sent = await this.#send('POST', '/login', { body: { username: account.name, password, remember } })
    const { from, until, outcome } = sent
    if (isReply(outcome) && outcome.status === 200) {
      if (isWrong) this.#complain('a wrong password was accepted')
      scene.counts.logIns++
      this.#account = account
      this.#state = {
        account,
        begun: from,
        since: until,
        seen: from,
        used: until,
        cleared: 0,
        remembered: remember,
        counter: { min: 0, max: 0 },
        unknownWrites: 0,
      }
      return
    }
    if (isReply(outcome) && outcome.status === 401) {
      if (isWrong) return
      if (!account.isEndedWithin(from, until)) this.#complain(`a login was refused: ${JSON.stringify(outcome.body)}`)
    }
    await this.#settle(account)
  }

  /** After an answer that is missing: whom a read finds, of the two that it may find, is whom this browser belongs to. */
  async #settle(account: Account = this.#account): Promise<void> {
    this.#state = 'unknown'
    for (;;) {
      const sent = await this.#send('GET', '/profile')
      if (!isReply(sent.outcome) || sent.outcome.status !== 200) {
        await new Promise(resolve => setTimeout(resolve, 200))
        continue
      }
      const { body } = sent.outcome
      const found: string | null = body === null ? null : body.name
      if (found === account.name) this.#account = account
      else if (found !== null && found !== this.#account.name) this.#complain(`is logged in as ${found}`)
      // What was not answered may still happen: nothing is certain before.
      if (found !== null) this.#learn(found, sent)
      else if (Date.now() > this.#last) this.#state = this.#isOut
      return
    }
  }

  async #logOut(): Promise<void> {
    const tabs = Array.from({ length: Math.floor(this.#scene.random() * 3) }, () => 'read' as const)
    const sent = (await this.#tabs(tabs, { method: 'POST', path: '/logout', ends: true }))!
    if (isReply(sent.outcome) && sent.outcome.status === 200) {
      this.#scene.counts.logOuts++
      this.#state = 'out'
    } else await this.#settle()
  }

  async #rotate(): Promise<void> {
    const known = this.#state
    const sent = (await this.#tabs(['read', 'count'], { method: 'POST', path: '/session/rotate', ends: false }))!
    if (!isReply(sent.outcome) || sent.outcome.status === 503) return this.#settle()
    if (sent.outcome.status === 401) this.#judge(null, sent, this.#state !== known)
    // A label of the device or the time of the rotation is a write too, but not one of the counter.
  }

  /** Ends all sessions of the user but this one, or with it. */
  async #endOthers(change: boolean): Promise<void> {
    const known = this.#state
    if (typeof known === 'string') return
    const { account } = known
    const ending: Ending = account.beginEnding(this)
    const newPassword = `password ${Date.now()} ${this.#name}`
    const sent = change
      ? await this.#send('POST', '/password', { body: { oldPassword: account.password, newPassword } })
      : await this.#send('DELETE', '/sessions')
    const { from, until, outcome } = sent
    const status = isReply(outcome) ? outcome.status : 0
    if (status === 200) {
      ending.until = until
      ending.certain = true
      this.#scene.counts.everywhere++
      this.#scene.counts.judged++
      if (this.#isOverAt(from)) this.#complain('ended all sessions of its user with a session that had ended')
      this.#state = change
        ? {
            ...known,
            since: until,
            seen: from,
            used: until,
            cleared: from,
            remembered: false,
            counter: null,
            unknownWrites: 5,
          }
        : 'out'
      return
    }
    const code = isReply(outcome) ? outcome.body?.error : undefined
    if (status === 401 && (code === 'not_fresh' || code === 'unauthenticated')) {
      ending.until = from
      account.endings.splice(account.endings.indexOf(ending), 1)
      if (code === 'unauthenticated') this.#judge(null, sent, false)
    } else ending.until = until + LATE
    await this.#settle(account)
  }

  /** The page of devices: the one in hand is among them. */
  async #devices(): Promise<void> {
    const sent = await this.#send('GET', '/sessions')
    if (!isReply(sent.outcome) || sent.outcome.status === 503) return
    if (sent.outcome.status === 401) return this.#judge(null, sent, false)
    const list: readonly { current: boolean; label: string; key: string }[] = sent.outcome.body
    this.#judge(this.#account.name, sent, false)
    if (list.filter(({ current }) => current).length !== 1 && this.#livesAt(Date.now()))
      this.#complain('is not in the list of its own devices')
    const other = list.find(({ current, label }) => !current && label.startsWith('browser ') && label !== this.#name)
    if (other === undefined || this.#scene.random() > 0.2) return
    // Which browser that is, is not known for certain: it may have a newer session.
    const ending = this.#account.beginEnding(null, true)
    await this.#send('DELETE', `/sessions/${other.key}`)
    ending.until = Date.now() + LATE
  }

  /** One thing that the person in front of it does. */
  async act(): Promise<void> {
    const { random } = this.#scene
    const die = random()
    if (typeof this.#state === 'string') {
      if (die < 0.6) await this.#logIn()
      else await this.#tabs(['read'])
    } else if (die < 0.5) {
      const kinds = ['read', 'read', 'count', 'count', 'abort'] as const
      await this.#tabs(Array.from({ length: 1 + Math.floor(random() * 4) }, () => this.#pick(kinds)))
    } else if (die < 0.72) await this.#tabs(['read'])
    else if (die < 0.8) await this.#tabs(['count'])
    else if (die < 0.86) await this.#rotate()
    else if (die < 0.9) await this.#devices()
    else if (die < 0.94) await this.#logOut()
    else if (die < 0.96) await this.#logIn()
    else if (die < 0.97) await this.#endOthers(true)
    else if (die < 0.978) await this.#endOthers(false)
    else {
      // Away until the session has expired: only a remember token brings the user back.
      const { idle } = this.#scene.lives
      await new Promise(resolve => setTimeout(resolve, idle + this.#scene.lives.idle / 10))
      await this.#tabs(['read'])
    }
  }

  /** At the end: both nodes say the same, and what the model says. */
  async finish(): Promise<void> {
    for (const node of this.#scene.nodes) {
      const sent = await this.#send('GET', '/profile', { node })
      if (!isReply(sent.outcome) || sent.outcome.status !== 200) {
        this.#complain(`at the end a node answered ${isReply(sent.outcome) ? sent.outcome.status : sent.outcome}`)
        continue
      }
      const found = sent.outcome.body === null ? null : sent.outcome.body.name
      this.#judge(found, sent, false)
      this.#learn(found, sent)
    }
  }
}
