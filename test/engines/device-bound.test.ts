// Sessions that are bound to a device, on each kind of database.
import { testDevices } from '../support/device-walks.ts'
import { onRealStores } from '../support/real-stores.ts'

onRealStores(store => `bound sessions on ${store}`, testDevices)
