// `deno serve` preloads nothing: this is the recipe with the control before it.
import process from 'node:process'
import './control.mjs'

const { default: recipe } = await import(`${process.env.RECIPE}`)
export default recipe
