// Express; test/libraries/connect.test.ts asks the others.
import { describe } from 'vitest'
import { EXPRESS } from '../support/connect/apps.ts'
import { inFramework } from '../support/connect/frameworks.ts'

describe(EXPRESS.name, () => inFramework(EXPRESS.name, EXPRESS.start))
