import { openUsers } from '../../server/users.mjs' // in place of your user table

const table = await openUsers()
/** With IDs that are text: JSON and React take them as they are. */
export const users = {
  async authenticate(name: string, password: string) {
    const user = await table.authenticate(name, password)
    return user && { ...user, id: `${user.id}` }
  },
}
