import { expect, it } from 'vitest'
import { PASSWORD } from '../../support/example-service.ts'
import { walkPages } from './pages.ts'
import { walk } from './walk.ts'

walk('the recipe for Next', 'next')

// Next answers 500 to whatever an action throws.
walkPages('the recipe for Next', 'next', { statusOf: { crossOrigin: 500, storeDown: 500 } }, reader => {
  it('answer an action that a script calls with the page as it is afterwards', async () => {
    const ada = reader()
    await ada.click('Log in', { username: 'ada', password: PASSWORD })
    const { answer } = await ada.open()
    const id = /name="\$ACTION_ID_(\w+)"/.exec(answer.text)![1]!
    const headers = { 'Next-Action': id, Accept: 'text/x-component', 'Content-Type': 'text/plain', Origin: ada.url }
    const called = await ada.send('POST', '/', '[]', headers)
    expect([called.status, called.text]).toEqual([200, expect.stringMatching(/\["Coats: ",1\]/)])
    ada.cookies.delete('session_id')
    expect(await ada.open()).toMatchObject({ name: null })
  })
})
