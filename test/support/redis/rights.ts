import { readFileSync } from 'node:fs'

/** What docs/stores/redis.md tells to allow: to all users, one who may ask for the role, and one who walks over all that is stored. */
const PAGE = readFileSync(new URL('../../../docs/stores/redis.md', import.meta.url), 'utf8')
export const [RIGHTS = [], ROLE = [], WALKING = []] = [
  ...PAGE.matchAll(/redis-cli ACL SETUSER coats ((?:[^\n#\\]|\\\n)+)/g),
].map(([, rules]) => rules!.split(/[\s\\']+/).filter(Boolean))

/** The address of a server for the user who has these rights. */
export const asCoats = (url: string) => url.replace('//', '//coats:secret@')
