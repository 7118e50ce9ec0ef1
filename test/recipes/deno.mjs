// `deno serve` preloads nothing: this is the recipe with the control before it.
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import './control.mjs'

const { default: recipe } = await import(`${pathToFileURL(`${process.cwd()}/app.ts`)}`)
export default recipe
