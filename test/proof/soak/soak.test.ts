import { beforeAll, describe, expect, it } from 'vitest'
import { build } from '../../support/scripts/build.mjs'
import { describeEngine } from '../../support/services/engines.ts'
import type { DatabaseName } from './databases.ts'
import { type SoakReport, soak } from './soak.ts'

/** Set by `npm run proof -- soak`: one of these runs, and nothing else. */
const MINUTES = Number(process.env.COATCHECK_SOAK_MINUTES ?? 0)
const ONLY = process.env.COATCHECK_SOAK_DATABASE ?? ''
/** Set by `npm run proof -- soak --broken`. Which browser meets a mistake is a matter of luck, so that `npm test` does without. */
const IS_BROKEN = process.env.COATCHECK_SOAK_BROKEN === '1'

const DATABASES = ['redis', 'postgresql'] as const satisfies readonly DatabaseName[]
const say = (line: string) => console.log(line)
const show = (database: string, { figures, violations }: SoakReport) => {
  const lines = Object.entries(figures).map(([name, figure]) => `  ${name}: ${figure}`)
  lines.push(...violations.map(violation => `  WRONG: ${violation}`))
  say(`The soak on ${database}:\n${lines.join('\n')}`)
}

beforeAll(() => (MINUTES > 0 || IS_BROKEN ? build() : undefined), 200_000)

describe.runIf(MINUTES > 0)('the soak in full', () => {
  for (const database of DATABASES.filter(name => ONLY === '' || name === ONLY))
    describeEngine(database, database, () => {
      it(`loses nothing and keeps nothing in ${MINUTES} minutes`, { timeout: (MINUTES + 5) * 60_000 }, async () => {
        const report = await soak({ database, seconds: MINUTES * 60, log: say })
        show(database, report)
        expect(report.violations).toEqual([])
      })
    })
})

// At the same time: they wait more than they compute.
describe.runIf(IS_BROKEN).concurrent('two nodes under load, restarted with their database', () => {
  const SHORT = { seconds: 30, browsers: 24 }
  // The load goes on for ten times as long where luck is late, and then all has to expire.
  const SLOW = { timeout: 480_000 }

  describeEngine('redis', 'what is broken on purpose is told', () => {
    const SESSIONS_GONE = `
      for _, key in ipairs(redis.call('KEYS', 'coatcheck:*')) do
        if redis.call('TYPE', key).ok == 'string' and redis.call('GET', key):sub(1, 2) == 's ' then redis.call('DEL', key) end
      end`

    const LOST = /was logged out, and nothing had ended the session/

    it('a node that keeps each request, sessions that are removed, and a key that nothing removes', SLOW, async () => {
      const { violations } = await soak({
        database: 'redis',
        ...SHORT,
        preload: ['./proof/soak/leaky.mjs'],
        expected: [LOST],
        async sabotage({ run }) {
          await run('EVAL', SESSIONS_GONE, '0')
          await run('SET', 'coatcheck:{abc}:forgotten', 'x 1')
        },
      })
      expect(violations).toContainEqual(expect.stringMatching(/^heapUsed grew from \d+ to \d+$/))
      expect(violations).toContainEqual(expect.stringMatching(LOST))
      expect(violations).toContainEqual('1 rows or keys should have been removed')
    })
  })

  describeEngine('postgresql', 'what is broken on purpose is told', () => {
    // What is live comes back after it was deleted, and what has expired is not deleted at all.
    const TRIGGERS = `
      CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.data := regexp_replace(NEW.data, '"count":\\d+', '"count":0'); RETURN NEW; END $$;
      CREATE TRIGGER forget BEFORE UPDATE ON coatcheck_sessions FOR EACH ROW EXECUTE FUNCTION forget();
      CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF OLD.expires_at < extract(epoch FROM clock_timestamp()) * 1000 THEN RETURN NULL; END IF; RETURN OLD; END $$;
      CREATE TRIGGER keep BEFORE DELETE ON coatcheck_sessions FOR EACH ROW EXECUTE FUNCTION keep();
      CREATE FUNCTION revive() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO coatcheck_sessions SELECT (OLD).* ON CONFLICT DO NOTHING; RETURN NULL; END $$;
      CREATE TRIGGER revive AFTER DELETE ON coatcheck_sessions FOR EACH ROW EXECUTE FUNCTION revive()`

    const FORGOTTEN = /acknowledged writes were lost/
    const REVIVED = /is logged in as user\d+, and the session had ended/

    it('a database that forgets writes, keeps what is deleted, and is not swept', SLOW, async () => {
      const { violations } = await soak({
        database: 'postgresql',
        ...SHORT,
        expected: [FORGOTTEN, REVIVED],
        async sabotage({ run, plantExpired }) {
          await run(TRIGGERS)
          await plantExpired(5)
        },
      })
      for (const pattern of [FORGOTTEN, REVIVED]) expect(violations).toContainEqual(expect.stringMatching(pattern))
      expect(violations).toContainEqual(expect.stringMatching(/^\d+ rows or keys should have been removed$/))
    })
  })
})
