import type { SessionError, VisitOf } from 'coatcheck'
import type { sessions } from '$lib/server/sessions'

declare global {
  namespace App {
    interface Locals {
      visit: VisitOf<typeof sessions>
      refusal?: SessionError
    }
    interface Error {
      code?: string
    }
  }
}
