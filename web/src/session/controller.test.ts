import { describe, expect, it } from "vitest";

import { controllerLink, ControlledPage, ControllingPhone, parseController } from "./controller.ts";
import type { Participant } from "./messages.ts";

const PAGE = 3;
const PHONE = 8;

/** The session as the server keeps it: any own change ends following. */
class Session {
  readonly follows = new Map<number, number | null>([[PAGE, null]]);
  page = new ControlledPage("Controller abc");
  readonly phone = new ControllingPhone(PAGE);

  list(): Participant[] {
    return [...this.follows].map(([id, follows]) => ({
      id,
      name: id === PHONE ? "Controller abc" : "Ada",
      role: "own",
      color: "#ffffff",
      follows,
      presents: false,
      isAway: false,
    }));
  }

  /** Tells both pages until nothing changes; a cycle would be refused by the server. */
  settle(): void {
    for (let round = 0; round < 10; round++) {
      const before = JSON.stringify([...this.follows]);
      const toFollow = this.follows.has(PAGE) ? this.page.next(PAGE, this.list()) : null;
      if (toFollow !== null) this.follow(PAGE, toFollow);
      if (this.follows.has(PHONE)) {
        const leader = this.phone.next(PHONE, this.list());
        if (leader !== null) this.follow(PHONE, leader);
      }
      if (JSON.stringify([...this.follows]) === before) return;
    }
    throw new Error("the pages do not come to rest");
  }

  follow(who: number, leader: number): void {
    if (this.follows.get(leader) === who) throw new Error("a cycle");
    this.follows.set(who, leader);
  }

  change(who: number): void {
    this.follows.set(who, null);
    this.settle();
  }
}

describe("a phone as controller", () => {
  it("shows the page's view, steers it when touched, and lets it go", () => {
    const session = new Session();
    session.settle();
    session.follows.set(PHONE, null);
    session.settle();
    const state = () => [session.follows.get(PAGE), session.follows.get(PHONE), session.phone.phase];
    expect(state()).toEqual([null, PAGE, "resting"]);
    session.change(PHONE);
    expect(state()).toEqual([PHONE, null, "steering"]);
    session.change(PHONE);
    expect(state()).toEqual([PHONE, null, "steering"]);
    session.change(PAGE);
    expect(state()).toEqual([null, PAGE, "resting"]);
    session.change(PHONE);
    expect(state()).toEqual([PHONE, null, "steering"]);
  });

  it("begins anew when it comes back, and says when nobody is there to steer", () => {
    const session = new Session();
    session.follows.set(PHONE, null);
    session.settle();
    session.follows.delete(PAGE);
    session.follows.set(PHONE, null);
    session.settle();
    expect([session.phone.phase, session.follows.get(PHONE)]).toEqual(["alone", null]);
    // The page was loaded again.
    session.page = new ControlledPage("Controller abc");
    session.follows.set(PAGE, null);
    session.settle();
    expect(session.follows.get(PHONE)).toBe(PAGE);
  });

  it("has a link with its code, and the token only after the hash", () => {
    const controller = { code: "abcdef", owner: 3 };
    const link = controllerLink("https://viz.example/run/?x=1#view=abc", controller, "se/cret");
    expect(link).toBe("https://viz.example/run/?controller=abcdef-3#token=se%2Fcret");
    expect(parseController(new URL(link).search)).toEqual(controller);
    for (const other of ["", "?controller=", "?controller=abc-3", "?controller=abcdef", "?controller=<b>-1"])
      expect(parseController(other), other).toBeNull();
  });
});
