// Which database a client is at. `select` moves the client alone: a connection opened with the options of the client is
// still at the database of the options, and a session ended there lives on where the client looks.
import { NotReady } from './link.ts'
import { refusalOf } from './refusals.ts'

/** Asks a client that does not tell by itself. */
export async function databaseOf(send: (args: string[]) => Promise<unknown>): Promise<string> {
  let answer: unknown
  try {
    answer = await send(['CLIENT', 'INFO'])
  } catch (error) {
    // Nothing was written, and the same will be answered next time.
    if (refusalOf(error) !== 'NOPERM') throw error
    throw new NotReady(
      'waitReplicas: the user of this connection may not ask CLIENT INFO, so it is unknown which database the client is at: grant +client|info',
    )
  }
  const database = /(?:^| )db=(\d+)/.exec(String(answer))?.[1]
  if (database === undefined) throw new NotReady('CLIENT INFO was not understood')
  return database
}

/** Takes a connection along to the database that its client is at. */
export function follower(
  client: (args: string[]) => Promise<unknown>,
  own: (args: string[]) => Promise<unknown>,
): () => Promise<void> {
  // Unknown at first: the options may name a database, or a URL among them.
  let at: string | null = null
  return async () => {
    const [database, from] = await Promise.all([databaseOf(client), at ?? databaseOf(own)])
    if (database !== from) {
      // Unknown where this fails: it may have been done.
      at = null
      await own(['SELECT', database])
    }
    at = database
  }
}
