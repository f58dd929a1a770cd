import { describe, expect, it, vi } from "vitest";

import type { Camera } from "../../view/schema.ts";
import { distance } from "../camera.ts";
import { Devices, type DeviceTarget } from "./devices.ts";
import { motionOf, PadButtons, usableGamepad, type GamepadLike } from "./gamepad.ts";
import { isStill, moved, speedOf, STILL } from "./motion.ts";
import { SpaceMouseReports } from "./space-mouse.ts";

const CAMERA: Camera = {
  eye: [0, -10, 0],
  target: [0, 0, 0],
  up: [0, 0, 1],
  projection: { perspective: { fov_y_rad: 0.5 } },
};
const PLACE = { size: { width: 800, height: 600 }, diagonal: 10, isFlat: false };

/** A gamepad with these sticks, and these buttons pressed. */
function pad(axes: readonly number[], pressed: readonly number[] = [], id = "Standard pad"): GamepadLike {
  const buttons = Array.from({ length: 17 }, (_, number) => {
    const isPressed = pressed.includes(number);
    return { pressed: isPressed, value: isPressed ? 1 : 0 };
  });
  return { id, mapping: "standard", connected: true, axes, buttons };
}

describe("a gamepad", () => {
  it("rests in the middle, and moves faster the farther a stick is", () => {
    expect(isStill(motionOf(pad([0.1, -0.12, 0.05, 0])))).toBe(true);
    expect(speedOf(1, 0.15)).toBe(1);
    expect(speedOf(-0.5, 0.15)).toBeLessThan(0);
    expect(Math.abs(speedOf(0.5, 0.15))).toBeLessThan(0.5);
    expect(speedOf(Number.NaN, 0.15)).toBe(0);
  });

  it("turns with the left stick, moves with the right one, comes nearer with the right trigger", () => {
    const turned = moved(CAMERA, motionOf(pad([1, 0, 0, 0])), 0.1, PLACE);
    expect(turned.target).toEqual(CAMERA.target);
    expect(turned.eye[0]).not.toBeCloseTo(0, 3);
    const panned = moved(CAMERA, motionOf(pad([0, 0, 1, 0])), 0.1, PLACE);
    // The picture moves to the right, so the camera moves to the left.
    expect(panned.target[0]).toBeLessThan(-0.01);
    expect(distance(moved(CAMERA, motionOf(pad([0, 0, 0, 0], [7])), 0.1, PLACE))).toBeLessThan(
      distance(CAMERA),
    );
    expect(distance(moved(CAMERA, motionOf(pad([0, 0, 0, 0], [6])), 0.1, PLACE))).toBeGreaterThan(
      distance(CAMERA),
    );
  });

  it("does not turn an image", () => {
    const flat = moved(CAMERA, motionOf(pad([1, 0, 0, 0])), 0.1, { ...PLACE, isFlat: true });
    expect(flat.eye[0]).toBeCloseTo(flat.target[0], 9);
    expect(flat.target[0]).toBeLessThan(0);
  });

  it("does not jump after a pause", () => {
    const motion = motionOf(pad([1, 0, 0, 0]));
    expect(moved(CAMERA, motion, 60, PLACE)).toEqual(moved(CAMERA, motion, 0.1, PLACE));
  });

  it("runs the command of a button once for each press", () => {
    const buttons = new PadButtons();
    expect(buttons.commands(pad([], [0]))).toEqual(["play"]);
    expect(buttons.commands(pad([], [0]))).toEqual([]);
    expect(buttons.commands(pad([], []))).toEqual([]);
    expect(buttons.commands(pad([], [0, 15]))).toEqual(["play", "timeForward"]);
  });

  it("is used only if its sticks are where they are expected", () => {
    const other: GamepadLike = { ...pad([0, 0]), mapping: "" };
    expect(usableGamepad([null, other])).toBeNull();
    expect(usableGamepad([null, other, pad([0])])?.id).toBe("Standard pad");
    const mouse: GamepadLike = { ...pad([0, 0, 0, 0, 0, 1], [], "3Dconnexion SpaceMouse"), mapping: "" };
    expect(usableGamepad([mouse])).toBe(mouse);
    expect(motionOf(mouse).yaw).toBe(1);
  });
});

describe("a 3-D mouse", () => {
  const report = (...values: number[]) => new DataView(new Int16Array(values).buffer);

  it("moves with its cap, in one report or in two", () => {
    const two = new SpaceMouseReports();
    two.take(1, report(350, 0, 0));
    two.take(2, report(0, 0, -350));
    expect([two.motion.panX, two.motion.yaw]).toEqual([1, 1]);
    const one = new SpaceMouseReports();
    one.take(1, report(350, 0, 0, 0, 0, -350));
    expect(one.motion).toEqual(two.motion);
    one.take(1, report(0, 0, 0, 0, 0, 0));
    expect(isStill(one.motion)).toBe(true);
  });

  it("ignores reports that are too short or unknown, and reports a button once", () => {
    const mouse = new SpaceMouseReports();
    expect(mouse.take(1, report(1))).toBe(false);
    expect(mouse.take(9, report(350, 350, 350))).toBe(false);
    expect(isStill(mouse.motion)).toBe(true);
    const buttons = (bits: number) => mouse.take(3, new DataView(new Uint8Array([bits]).buffer));
    expect([buttons(1), buttons(1), buttons(0), buttons(2)]).toEqual([true, false, false, true]);
  });
});

/** A browser whose frames the test runs. */
function browser() {
  const frames: ((now: number) => void)[] = [];
  const state = { pads: [] as (GamepadLike | null)[], now: 0 };
  const events = new EventTarget();
  const hid = Object.assign(new EventTarget(), {
    getDevices: () => Promise.resolve([]),
    requestDevice: () => Promise.resolve([device]),
  });
  const device = Object.assign(new EventTarget(), {
    productName: "SpaceNavigator",
    opened: false,
    open: () => Promise.resolve(),
  });
  const run = () => {
    state.now += 16;
    const next = frames.shift();
    next?.(state.now);
    return next !== undefined;
  };
  return {
    state,
    events,
    device,
    hid,
    run,
    given: {
      gamepads: () => state.pads,
      requestFrame: (step: (now: number) => void) => void frames.push(step),
      events,
      navigator: { hid },
    },
  };
}

function target() {
  const calls: string[] = [];
  const move = vi.fn<(camera: Camera) => void>();
  const given: DeviceTarget = {
    camera: () => CAMERA,
    size: () => PLACE.size,
    diagonal: () => PLACE.diagonal,
    isFlat: () => false,
    move,
    rest: () => void calls.push("rest"),
    command: (command) => void calls.push(command),
    show: ({ gamepad, spaceMouse }) => void calls.push(`${gamepad ?? "-"} ${spaceMouse ?? "-"}`),
  };
  return { calls, move, given };
}

describe("the devices of the page", () => {
  it("cost no frame until a gamepad is there, move the camera, and rest", () => {
    const { given, events, state, run } = browser();
    const { calls, move, given: page } = target();
    new Devices(page, given);
    expect(run()).toBe(false);
    state.pads = [pad([1, 0, 0, 0], [1])];
    events.dispatchEvent(new Event("gamepadconnected"));
    expect(run() && run()).toBe(true);
    expect(move).toHaveBeenCalledTimes(1);
    expect(calls).toEqual(["- -", "Standard pad -", "reset"]);
    state.pads = [pad([0, 0, 0, 0])];
    run();
    run();
    expect(calls.filter((call) => call === "rest")).toHaveLength(1);
    state.pads = [];
    run();
    expect(run()).toBe(false);
    expect(calls.at(-1)).toBe("- -");
  });

  it("use a 3-D mouse that the person allows, until it is unplugged", async () => {
    const { given, hid, device, run } = browser();
    const { calls, move, given: page } = target();
    const devices = new Devices(page, given);
    await devices.connectSpaceMouse();
    expect(calls.at(-1)).toBe("- SpaceNavigator");
    const data = new DataView(new Int16Array([0, 0, 0, 350, 0, 0]).buffer);
    device.dispatchEvent(Object.assign(new Event("inputreport"), { reportId: 1, data }));
    run();
    run();
    expect(move).toHaveBeenCalledTimes(1);
    // The same device, chosen again, is listened to once.
    await devices.connectSpaceMouse();
    const heard = vi.spyOn(SpaceMouseReports.prototype, "take");
    device.dispatchEvent(Object.assign(new Event("inputreport"), { reportId: 1, data }));
    expect(heard).toHaveBeenCalledTimes(1);
    hid.dispatchEvent(Object.assign(new Event("disconnect"), { device }));
    run();
    expect(run()).toBe(false);
    expect(calls.at(-1)).toBe("rest");
    expect(calls).toContain("- -");
  });

  it("work without the interfaces of newer browsers", () => {
    const { calls, given: page } = target();
    new Devices(page, { ...browser().given, navigator: {} });
    expect(calls).toEqual(["- -"]);
    expect(STILL.yaw).toBe(0);
  });
});
