import { quote } from '../text/quote.ts'
import { DOOR, type VisitDoor } from '../visits/visit-door.ts'

/** The door of a visit, whichever copy of this package made it. @throws TypeError that says what to pass */
export function doorOf(visit: unknown): VisitDoor {
  const door = (visit as { readonly [DOOR]?: VisitDoor } | null | undefined)?.[DOOR]
  if (door === undefined)
    throw new TypeError(
      `import: expected a visit, such as visits.of(request, response), got ${quote(visit)} (two versions of coatcheck in one process do not know each other: npm ls coatcheck)`,
    )
  return door
}
