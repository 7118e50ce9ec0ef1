import { openUsers } from '../../../server/users.mjs' // in place of your user table

export const users = await openUsers()
