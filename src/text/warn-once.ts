const warned = new Set<string>()

/** A warning of the process, once for each code. */
export function warnOnce(code: string, message: string): void {
  if (!warned.has(code)) process.emitWarning(message, { type: 'CoatcheckWarning', code })
  warned.add(code)
}
