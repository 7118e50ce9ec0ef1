import { Outlet, Scripts } from 'react-router'
import type { Route } from './+types/root'
import { visitContext, visits } from './sessions.server'

export const middleware: Route.MiddlewareFunction[] = [
  ({ request, context }, next) =>
    visits.handle(request, visit => {
      context.set(visitContext, visit)
      return next()
    }),
]

export default function Root() {
  return (
    <html lang="en">
      <body>
        <Outlet />
        <Scripts />
      </body>
    </html>
  )
}
