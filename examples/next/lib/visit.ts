import { cookies, headers } from 'next/headers'
import { visits } from './sessions'

type CurrentVisit = ReturnType<typeof visits.of>
const opened = new WeakMap<object, CurrentVisit>()

/** Next gives pages and actions the headers alone, the same object to all of one request. */
async function visitOf(method: 'GET' | 'POST'): Promise<CurrentVisit> {
  const given = await headers()
  const visit = opened.get(given) ?? visits.of(new Request(`http://${given.get('host')}/`, { method, headers: given }))
  opened.set(given, visit)
  return visit
}

/** For pages: they read, and see what an action of the same request did. */
export async function currentVisit(): Promise<CurrentVisit> {
  const visit = await visitOf('GET')
  visit.respond(new Response()) // from here on no cookie can be set
  return visit
}

/** For actions: runs what needs a visit, and gives the cookies to Next. */
export async function withVisit<T>(run: (visit: CurrentVisit) => Promise<T>): Promise<T> {
  const [visit, jar] = [await visitOf('POST'), await cookies()]
  try {
    return await run(visit)
  } finally {
    for (const { name, value, options } of visit.cookies) jar.set(name, value, options)
  }
}
