export {
  type DeviceFetchVisits,
  type DeviceInfo,
  type DeviceNodeVisits,
  deviceBound,
  deviceOf,
  deviceState,
} from './device-bound/device-bound.ts'
export type { DeviceState } from './device-bound/devices.ts'
export type { DeviceBoundOptions } from './device-bound/options.ts'
