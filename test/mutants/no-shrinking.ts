// Whether a mistake is noticed is all that is asked: the smallest input that shows it takes far longer than the first.
import fc from 'fast-check'

fc.configureGlobal({ endOnFailure: true })
