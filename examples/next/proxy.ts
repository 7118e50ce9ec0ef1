import { NextResponse } from 'next/server'
import { visits } from './lib/sessions'

export const config = { matcher: ['/', '/orders'] } // your pages; route handlers and actions have visits of their own
export const proxy = visits.proxy(NextResponse)
