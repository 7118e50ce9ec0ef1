import { describe, expect, it } from 'vitest'
import { isToken, maskToken } from '../../../src/visits/cross-origin.ts'

const TOKEN = 'abcdefghijklmnopqrstuvwxyz-_0123456789ABCDE'

describe('a masked CSRF token', () => {
  it('looks different each time and is accepted each time, and so is the token as it is', () => {
    expect(isToken(TOKEN, TOKEN)).toBe(true)
    const masked = Array.from({ length: 200 }, () => maskToken(TOKEN))
    expect(new Set(masked).size).toBe(200)
    for (const each of masked) {
      expect(each).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(each).not.toContain(TOKEN.slice(0, 6))
      expect(isToken(TOKEN, each)).toBe(true)
    }
  })

  it('is refused with one character changed, cut, doubled or of another session', () => {
    const masked = maskToken(TOKEN)
    const other = maskToken(TOKEN.replace('a', 'b'))
    const flip = (text: string, at: number) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
    const wrong = [other, `${masked}${masked}`, masked.slice(1), masked.slice(0, -1), `${masked} `, ` ${masked}`]
    for (let at = 0; at < TOKEN.length; at++) wrong.push(flip(TOKEN, at))
    // The last character of the masked form carries unused bits only.
    for (let at = 0; at < masked.length - 1; at++) wrong.push(flip(masked, at))
    for (const each of wrong) expect(isToken(TOKEN, each)).toBe(false)
  })

  it('is refused where it is no text, or as long as one with characters that no token has', () => {
    const masked = maskToken(TOKEN)
    const odd: unknown[] = ['!', ' ', '=', '.', '%', 'é', '\0'].flatMap(character =>
      [0, 1, 57, masked.length - 2].map(at => masked.slice(0, at) + character + masked.slice(at + 1)),
    )
    odd.push(undefined, null, '', 0, 1n, true, {}, [TOKEN], new String(TOKEN), 'ā'.repeat(43), 'x'.repeat(1e6))
    for (const each of odd) expect(isToken(TOKEN, each)).toBe(false)
  })
})
