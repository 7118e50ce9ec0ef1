export { type DeviceFetchVisits, type DeviceNodeVisits, deviceBound } from './device-bound/device-bound.ts'
export { type DeviceInfo, deviceOf, deviceState } from './device-bound/device-of.ts'
export type { DeviceState } from './device-bound/devices.ts'
export type { DeviceBoundOptions } from './device-bound/options.ts'
