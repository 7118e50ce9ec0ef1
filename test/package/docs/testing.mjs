// @ts-nocheck: it stands around a block of docs/testing.md, which has the names that are not declared here.
// biome-ignore-all lint/correctness/noUnusedVariables: the block uses them
import { createServer } from 'node:http'
import { SessionError } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'

function makeServer(sessions) {
  const visits = nodeVisits(sessions)
  return createServer(async (request, response) => {
    try {
      const visit = visits.of(request, response)
      if (request.url === '/login') await visit.logIn({ user: { id: 42n, name: 'ada' } })
      if (request.url === '/logout') await visit.logOut()
      response.setHeader('Content-Type', 'text/plain').end((await visit.get())?.user?.name ?? 'no user')
    } catch (error) {
      response.writeHead(error instanceof SessionError ? error.status : 500).end()
    }
  })
}
/* the block */
