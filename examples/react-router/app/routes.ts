import { index, type RouteConfig, route } from '@react-router/dev/routes'

export default [
  index('routes/home.tsx'),
  route('profile', 'routes/profile.ts'),
  route('cart', 'routes/cart.ts'),
  route('login', 'routes/login.ts'),
  route('logout', 'routes/logout.ts'),
  route('account', 'routes/account.ts'),
] satisfies RouteConfig
