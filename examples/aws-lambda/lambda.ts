import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda'

/** An event of an HTTP API or of a function URL (payload 2.0) as a Request. */
export function requestOf({ rawPath, rawQueryString, cookies, body, ...event }: APIGatewayProxyEventV2): Request {
  const headers = new Headers(event.headers as Record<string, string>)
  if (cookies) headers.set('cookie', cookies.join('; ')) // they are not among the headers
  const query = rawQueryString && `?${rawQueryString}`
  return new Request(`https://${headers.get('host')}${rawPath}${query}`, {
    method: event.requestContext.http.method,
    headers,
    body: body === undefined ? null : Buffer.from(body, event.isBase64Encoded ? 'base64' : 'utf8'),
  })
}

/** A Response as the answer of a function: `headers` holds one value for each name, so that cookies have a list. */
export async function resultOf(response: Response): Promise<APIGatewayProxyStructuredResultV2> {
  const cookies = response.headers.getSetCookie()
  response.headers.delete('set-cookie')
  const body = Buffer.from(await response.arrayBuffer()).toString('base64')
  return {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    cookies,
    body,
    isBase64Encoded: true,
  }
}
