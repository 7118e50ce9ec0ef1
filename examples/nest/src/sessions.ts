// The module, the guards, the decorator and the filter: what every application of Nest needs once, on Express and on Fastify.
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Global,
  HttpException,
  Inject,
  Injectable,
  Module,
  SetMetadata,
} from '@nestjs/common'
import { APP_FILTER, APP_GUARD, HttpAdapterHost, Reflector } from '@nestjs/core'
import { type Duration, SessionManager, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'

const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const visits = nodeVisits(sessions)
export type Sessions = typeof sessions
export type Visit = VisitOf<Sessions>
/** The manager, for what has no request: `@Inject(SESSIONS) sessions: Sessions`. */
export const SESSIONS = Symbol('sessions')

/** The visit of a request, the same wherever it is asked for. Fastify has the request of node:http below its own. */
function visitIn(context: ExecutionContext): Visit {
  const http = context.switchToHttp()
  const [request, response] = [http.getRequest(), http.getResponse()]
  return visits.of(request.raw ?? request, response.raw ?? response)
}

/** `@CurrentVisit() visit: Visit` in a handler. */
export const CurrentVisit = createParamDecorator((_, context: ExecutionContext) => visitIn(context))

/** `@Within('15m')`: the login has to be that fresh. */
export const Within = (within: Duration) => SetMetadata('within', within)

/** Before every handler: what a page of another origin sends gets no further. */
@Injectable()
export class OriginGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    visitIn(context).checkOrigin()
    return true
  }
}

/** `@UseGuards(UserGuard)`: only for users who are logged in. */
@Injectable()
export class UserGuard implements CanActivate {
  constructor(@Inject(Reflector) private readonly reflector: Reflector) {}

  async canActivate(context: ExecutionContext) {
    const within = this.reflector.getAllAndOverride<Duration>('within', [context.getHandler(), context.getClass()])
    await visitIn(context).requireUser(within ? { freshWithin: within } : {})
    return true
  }
}

/** Nest's own errors as they are; ours and those of body parsers with their status; of others nothing, since Nest shows text. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost) {
    const { expose, status, statusCode = status, type, code = type } = Object(error)
    const isMeant = typeof expose === 'boolean' || /^FST_/.test(code) // Fastify's own
    const isNests = error instanceof HttpException
    if (!isNests && expose !== true) console.error(error) // the details are for the log alone
    const body = isNests ? error.getResponse() : { error: isMeant ? code : 'internal_error' }
    const answer = isNests ? error.getStatus() : isMeant ? statusCode : 500
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), body, answer)
  }
}

@Global()
@Module({
  providers: [
    { provide: SESSIONS, useValue: sessions },
    { provide: APP_GUARD, useClass: OriginGuard },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
  exports: [SESSIONS],
})
export class SessionsModule {
  onApplicationShutdown() {
    return sessions.close()
  }
}
