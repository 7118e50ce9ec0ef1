import { createCsrfMiddleware, createMiddleware, createStart } from '@tanstack/react-start'
import { setResponseStatus } from '@tanstack/react-start/server'
import { SessionError } from 'coatcheck'

/** Start answers 200 to a server function that throws, and 500 to the page that called it: our errors have their status. */
const withStatus = createMiddleware({ type: 'function' }).server(async ({ next }) => {
  try {
    return await next()
  } catch (error) {
    if (error instanceof SessionError) {
      setResponseStatus(error.status)
      if (error.status >= 500) console.error(error) // the details are for the log alone
    }
    throw error
  }
})

export const startInstance = createStart(() => ({
  // Start's own: on by itself as long as there is no src/start.ts.
  requestMiddleware: [createCsrfMiddleware({ filter: ({ handlerType }) => handlerType === 'serverFn' })],
  functionMiddleware: [withStatus],
}))
