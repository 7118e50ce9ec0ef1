// What stands in for the gateway on your machine: it makes an event of each request, as AWS does, and is not deployed.
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda'
import { handler } from './handler.ts'

createServer(async (request, response) => {
  const { pathname, search } = new URL(request.url ?? '/', 'http://localhost')
  const { cookie, ...headers } = request.headers
  const body = await buffer(request)
  const event = {
    version: '2.0',
    rawPath: pathname,
    rawQueryString: search.slice(1),
    headers: { ...headers, 'x-forwarded-proto': 'https' },
    ...(cookie !== undefined && { cookies: cookie.split('; ') }),
    ...(body.length > 0 && { body: body.toString('base64') }),
    isBase64Encoded: body.length > 0,
    requestContext: { http: { method: request.method, path: pathname } },
  } as unknown as APIGatewayProxyEventV2
  const result = (await handler(event, {} as Context, () => {})) as APIGatewayProxyStructuredResultV2
  for (const [name, value] of Object.entries(result.headers ?? {})) response.setHeader(name, `${value}`)
  if (result.cookies?.length) response.setHeader('Set-Cookie', result.cookies)
  response.writeHead(result.statusCode ?? 200).end(result.body, 'base64')
}).listen(process.env.PORT ?? 3000)
