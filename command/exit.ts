/** What the command ends with; the table in docs/command.md is compared with this. */
export const EXIT = { done: 0, failed: 1, usage: 2, interrupted: 130, terminated: 143 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** How a command went: one that finished although a signal came is done. */
export type Ending = 'done' | 'interrupted'

/** The command line is wrong; nothing was begun. The message is all that its writer needs. */
export class UsageError extends Error {}

/** It could not be done; the message is for people, without secrets. */
export class Failure extends Error {}
