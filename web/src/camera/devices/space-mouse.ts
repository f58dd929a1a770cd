//! 3-D mice by WebHID: their reports are translation, rotation and buttons.

import { speedOf, STILL, type Motion } from "./motion.ts";

/** Vendors of 3-D mice: 3Dconnexion, and Logitech for older ones. */
const FILTERS = [
  { vendorId: 0x256f },
  // Multi-axis controllers of the generic desktop, also of Logitech.
  { vendorId: 0x046d, usagePage: 0x01, usage: 0x08 },
] as const;

/** Full deflection in reports. */
const FULL = 350;
/** Share of the way of the cap that counts as its middle. */
const DEAD_ZONE = 0.08;

const TRANSLATION = 1;
const ROTATION = 2;
const BUTTONS = 3;

/** Positions of the cap along and about its axes: right, toward the person, down. */
interface Cap {
  readonly translation: readonly [number, number, number];
  readonly rotation: readonly [number, number, number];
}

/** State made of the reports of a device. */
export class SpaceMouseReports {
  #cap: Cap = { translation: [0, 0, 0], rotation: [0, 0, 0] };
  #buttons = 0;

  /** Takes a report; returns true if it is of a button that was pressed. */
  take(id: number, data: DataView): boolean {
    if (id === TRANSLATION && data.byteLength >= 6) {
      this.#cap = { ...this.#cap, translation: three(data, 0) };
      // Newer devices send all six values in one report.
      if (data.byteLength >= 12) this.#cap = { ...this.#cap, rotation: three(data, 6) };
    } else if (id === ROTATION && data.byteLength >= 6) {
      this.#cap = { ...this.#cap, rotation: three(data, 0) };
    } else if (id === BUTTONS && data.byteLength >= 1) {
      const now = data.getUint8(0);
      const isPressed = (now & ~this.#buttons) !== 0;
      this.#buttons = now;
      return isPressed;
    }
    return false;
  }

  get motion(): Motion {
    const { translation, rotation } = this.#cap;
    const speed = (value: number) => speedOf(value / FULL, DEAD_ZONE);
    return {
      ...STILL,
      panX: speed(translation[0]),
      panY: speed(translation[2]),
      nearer: -speed(translation[1]),
      yaw: -speed(rotation[2]),
      pitch: speed(rotation[0]),
    };
  }
}

function three(data: DataView, at: number): [number, number, number] {
  const value = (number: number) => data.getInt16(at + 2 * number, true);
  return [value(0), value(1), value(2)];
}

/** The parts of WebHID that are used; browsers without it lack `navigator.hid`. */
export interface HidDevice extends EventTarget {
  readonly productName: string;
  readonly opened: boolean;
  open(): Promise<void>;
}
export interface HidReport extends Event {
  readonly reportId: number;
  readonly data: DataView;
}
export interface Hid extends EventTarget {
  getDevices(): Promise<HidDevice[]>;
  requestDevice(options: { filters: readonly object[] }): Promise<HidDevice[]>;
}

export function hidOf(browser: object): Hid | null {
  return "hid" in browser ? ((browser as { readonly hid: Hid | undefined }).hid ?? null) : null;
}

export interface SpaceMouseListener {
  /** Called with the name of a device in use, and with null when it is gone. */
  readonly onDevice: (name: string | null) => void;
  readonly onMotion: (motion: Motion) => void;
  readonly onButton: () => void;
}

/** A 3-D mouse, if the person has allowed one. */
export class SpaceMouse {
  readonly #hid: Hid;
  readonly #listener: SpaceMouseListener;
  #device: HidDevice | null = null;
  /** Ends the listening to the reports of the device. */
  #listening = new AbortController();

  constructor(hid: Hid, listener: SpaceMouseListener) {
    this.#hid = hid;
    this.#listener = listener;
    hid.addEventListener("disconnect", (event) => {
      if ((event as Event & { readonly device?: HidDevice }).device !== this.#device) return;
      this.#device = null;
      listener.onMotion(STILL);
      listener.onDevice(null);
    });
  }

  /** Uses a device that was allowed at an earlier visit. */
  async resume(): Promise<void> {
    const [known] = await this.#hid.getDevices();
    if (known) await this.#use(known);
  }

  /** Asks the person for a device; only after a click. */
  async connect(): Promise<void> {
    const [chosen] = await this.#hid.requestDevice({ filters: FILTERS });
    if (chosen) await this.#use(chosen);
  }

  async #use(device: HidDevice): Promise<void> {
    if (!device.opened) await device.open();
    const reports = new SpaceMouseReports();
    this.#listening.abort();
    this.#listening = new AbortController();
    this.#device = device;
    const take = (event: Event) => {
      const { reportId, data } = event as HidReport;
      if (reports.take(reportId, data)) this.#listener.onButton();
      this.#listener.onMotion(reports.motion);
    };
    device.addEventListener("inputreport", take, { signal: this.#listening.signal });
    this.#listener.onDevice(device.productName);
  }
}
