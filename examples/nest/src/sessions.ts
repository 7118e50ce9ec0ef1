// The module, the guard, the decorator and the filter: what every application of Nest needs once.
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Global,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  SetMetadata,
} from '@nestjs/common'
import { APP_FILTER, Reflector } from '@nestjs/core'
import { type Duration, SessionError, SessionManager, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import type { Response } from 'express'

const open = () =>
  new SessionManager({
    store: new MemoryStore(),
    rememberFor: '30d',
    initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
  })
export type Sessions = ReturnType<typeof open>
export type Visit = VisitOf<Sessions>
/** The manager, for what has no request: `@Inject(SESSIONS) sessions: Sessions`. */
export const SESSIONS = Symbol('sessions')

/** `@CurrentVisit() visit: Visit` in a handler. */
export const CurrentVisit = createParamDecorator((_, context: ExecutionContext) => visitIn(context))
const visitIn = (context: ExecutionContext): Visit => context.switchToHttp().getRequest().visit

/** `@Within('15m')`: the login has to be that fresh. */
export const Within = (within: Duration) => SetMetadata('within', within)

/** `@UseGuards(UserGuard)`: only for users who are logged in. */
@Injectable()
export class UserGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  async canActivate(context: ExecutionContext) {
    const within = this.reflector.getAllAndOverride<Duration>('within', [context.getHandler(), context.getClass()])
    await visitIn(context).requireUser(within ? { freshWithin: within } : {})
    return true
  }
}

/** Our errors, as JSON with their status: 401, 403, 409, 503. */
@Catch(SessionError)
export class SessionFilter implements ExceptionFilter {
  catch(error: SessionError, host: ArgumentsHost) {
    if (error.status >= 500) console.error(error) // the details are for the log alone
    host.switchToHttp().getResponse<Response>().status(error.status).json({ error: error.code })
  }
}

@Global()
@Module({
  providers: [
    { provide: SESSIONS, useFactory: open },
    { provide: APP_FILTER, useClass: SessionFilter },
  ],
  exports: [SESSIONS],
})
export class SessionsModule {
  constructor(@Inject(SESSIONS) private readonly sessions: Sessions) {}

  configure(consumer: MiddlewareConsumer) {
    const visits = nodeVisits(this.sessions)
    consumer
      .apply((request, response, next) => {
        request.visit = visits.of(request, response)
        next()
      })
      .forRoutes('*path')
  }

  onApplicationShutdown() {
    return this.sessions.close()
  }
}
