// Older versions under names of their own have no types.
declare module 'express-4'
declare module 'express-session-1.18'
