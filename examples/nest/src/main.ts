import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { AppModule } from './app.js'

const app = await NestFactory.create<NestExpressApplication>(AppModule)
app.useBodyParser('json', { limit: '16kb' }).useBodyParser('urlencoded', { limit: '16kb', extended: false })
app.enableShutdownHooks()
await app.listen(process.env.PORT ?? 3000)
