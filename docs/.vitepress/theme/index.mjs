// The theme of VitePress in the colours of the example page, with the fonts of the system.
import theme from 'vitepress/theme-without-fonts'
import './style.css'

export default theme
