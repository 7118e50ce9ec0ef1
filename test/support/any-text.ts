import fc from 'fast-check'

const unit = fc.nat({ max: 0xffff }).map(code => String.fromCharCode(code))

/** Text of any UTF-16 units, halves of pairs too. (fast-check's `unit: 'binary'` takes two seconds to begin.) */
export const anyText = (options: { maxLength?: number } = {}) => fc.string({ unit, ...options })
