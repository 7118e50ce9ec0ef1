// Older versions under names of their own have no types.
declare module 'express-4'
declare module 'express-session-1.18'
// Its types are a package of their own, for an older version.
declare module 'oidc-provider'
