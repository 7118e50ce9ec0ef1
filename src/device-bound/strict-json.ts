// JSON of which every reader sees the same. JSON.parse lets the last of two equal members win, others the first: what one
// part of a service checks would not be what another part uses (RFC 7515, section 4: names within a header are unique).

/** In valid JSON: a string, with the colon after it if it names a member, or a bracket. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/g

/** Whether an object in this valid JSON has two members of one name. */
function hasDuplicates(json: string): boolean {
  // Not by recursion: a few KiB can be nested deeper than the stack is.
  const open: Set<string>[] = []
  for (const [token, isName] of json.matchAll(TOKEN)) {
    if (token === '{' || token === '[') open.push(new Set())
    else if (token === '}' || token === ']') open.pop()
    else if (isName !== undefined) {
      const names = open.at(-1)!
      // "alg" and "\u0061lg" are one name.
      const name = JSON.parse(token.slice(0, -isName.length)) as string
      if (names.has(name)) return true
      names.add(name)
    }
  }
  return false
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The members of a JSON object; `null` for bytes that are not one, and where a name stands twice, at any depth. */
export function membersOf(bytes: Uint8Array): ReadonlyMap<string, unknown> | null {
  try {
    const json = UTF8.decode(bytes)
    const value: unknown = JSON.parse(json)
    return isObject(value) && !hasDuplicates(json) ? ownMembers(value) : null
  } catch {
    return null
  }
}

export const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A map, so that nothing is found which an object inherits. */
export const ownMembers = (value: object): ReadonlyMap<string, unknown> => new Map(Object.entries(value))
