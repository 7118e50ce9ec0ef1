import type { Ending } from '../exit.ts'
import type { Task } from '../task.ts'

/** Creates the tables, and says whether there was anything to do. */
export async function migrate({ sql, name, output }: Task): Promise<Ending> {
  if (sql === null) {
    await output.result(`${name}: there is nothing to migrate, Redis needs no schema.`, { migrated: false })
    return 'done'
  }
  const wasThere = await sql.isMigrated()
  if (!wasThere) await sql.migrate()
  await output.result(
    wasThere
      ? `${name}: the tables are there, nothing was changed.`
      : `${name}: the tables were missing and have been created.`,
    { migrated: !wasThere },
  )
  return 'done'
}
