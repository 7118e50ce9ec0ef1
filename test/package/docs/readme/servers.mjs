// @ts-nocheck: it stands around a block of the README, which has the names that are not declared here.
import { fetchVisits } from 'coatcheck/fetch'
import newFastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'

const [fastify, koa, hono] = [newFastify(), new Koa(), new Hono()]
// biome-ignore lint/correctness/noUnusedVariables: the block uses it
const visits = nodeVisits(sessions)
const webVisits = fetchVisits(sessions)
/* the block */
const headers = { cookie: `session_id=${session.secret}` }
const request = new Request('https://example.com/me', { headers })
async function textAt(server) {
  if (!server.listening) await new Promise(resolve => server.once('listening', resolve))
  return (await fetch(`http://localhost:${server.address().port}/me`, { headers })).text()
}
await fastify.listen({ port: 0 })
const answers = [server.listen(0), fastify.server, koa.listen(0)].map(textAt)
const fromHono = webVisits.handle(request, visit => hono.fetch(request, { visit }))
assert.deepEqual(await Promise.all(answers), ['ada', 'ada', 'ada'])
assert.equal(await (await fromHono).text(), 'ada')
assert.equal(await (await GET(request)).text(), 'ada')
