//! State of the controllers of the camera, as the page shows it.

export interface DeviceState {
  /** Name of the gamepad in use; null while there is none. */
  readonly gamepad: string | null;
  /** Name of the 3-D mouse in use; null while there is none. */
  readonly spaceMouse: string | null;
  /** True if the browser can connect a 3-D mouse. */
  readonly mayUseSpaceMouse: boolean;
}

export const NO_DEVICES: DeviceState = { gamepad: null, spaceMouse: null, mayUseSpaceMouse: false };
