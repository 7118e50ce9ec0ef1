/** Headers of a request that says no more than the guard against other origins has to know. */
export const onlyHost = (name: string): string | null => (name === 'host' ? 'app.example.com' : null)
