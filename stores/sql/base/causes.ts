import { bareError } from '../../../src/text/bare-error.ts'

// How the databases quote a statement's values: "Duplicate entry '…'", "invalid input syntax for type bigint: …".
const QUOTED = /\b(entry|value:?|type [^:'"]+:) (?:'[\s\S]*'|"[\s\S]*")/g

/**
 * A driver's error without the values of its statement: PostgreSQL names whole rows in `detail`, MySQL quotes values in
 * messages. A log of the cause contains no user's session.
 */
export const withoutValues = (error: unknown): Error => bareError(error, text => text.replace(QUOTED, '$1 …'))
