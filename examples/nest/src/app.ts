import {
  BadRequestException,
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  Module,
  Post,
  Redirect,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common'
import { stringify } from 'coatcheck'
import { openUsers } from '../../server/users.mjs' // in place of your user table
import { CurrentVisit, SessionsModule, UserGuard, type Visit, Within } from './sessions.js'

const users = await openUsers()

/** A field of what a client sent: a text, and not a long one. */
function text(field: unknown): string {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0'))
    throw new BadRequestException('malformed_field')
  return field
}

@Controller()
export class AppController {
  // User IDs are bigint, which Nest cannot write.
  @Get('profile')
  @Header('Content-Type', 'application/json')
  async profile(@CurrentVisit() visit: Visit) {
    return stringify((await visit.requireUser()).user)
  }

  @Get('cart')
  async cart(@CurrentVisit() visit: Visit) {
    const session = await visit.get()
    const hint = await visit.take('hint') // shown once
    return { cart: session?.data.cart ?? {}, hint: hint ?? '' }
  }

  @Post('cart')
  @HttpCode(200)
  async add(@CurrentVisit() visit: Visit, @Body('article') article: unknown) {
    if (article !== 'coat' && article !== 'hat') throw new BadRequestException('unknown_article')
    const session = await visit.update(data => {
      data.cart[article] = (data.cart[article] ?? 0) + 1
    })
    return session?.data.cart ?? {}
  }

  @Post('login')
  @HttpCode(200)
  @Header('Content-Type', 'application/json')
  async logIn(@CurrentVisit() visit: Visit, @Body() body: Record<string, unknown> = {}) {
    const { username, password, remember } = body
    const user = await users.authenticate(text(username), text(password))
    if (!user) throw new UnauthorizedException('wrong_credentials')
    const session = await visit.logIn({
      user,
      remember: remember === true,
      data: before => ({ cart: before.cart }),
    })
    return stringify(session.user)
  }

  @Post('logout')
  @HttpCode(200)
  async logOut(@CurrentVisit() visit: Visit) {
    await visit.logOut()
    return { message: 'Logged out.' }
  }

  @Get('account')
  @UseGuards(UserGuard)
  @Header('Content-Type', 'text/html')
  async form(@CurrentVisit() visit: Visit) {
    const csrf = await visit.csrfToken()
    return `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`
  }

  @Post('account')
  @UseGuards(UserGuard)
  @Within('15m')
  @Redirect('/cart', 303)
  async save(@CurrentVisit() visit: Visit, @Body('csrf') csrf: unknown) {
    await visit.checkCsrf(csrf)
    await visit.update({ hint: 'Saved.' })
  }
}

@Module({ imports: [SessionsModule], controllers: [AppController] })
export class AppModule {}
