// Older versions under names of their own have no types.
declare module 'express-4'
declare module 'express-session-1.18'
declare module 'compression'
declare module 'compression-1.7'
declare module 'on-headers'
