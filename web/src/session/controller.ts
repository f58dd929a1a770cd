//! A phone as controller of somebody's view, by following: at rest the phone follows the person who invited it, and so shows their view.
//! Touching it ends that (any own change of a view does); then the person's page follows the phone. When the person moves the view again,
//! their page no longer follows, and the phone follows again. Pure.

import type { Participant } from "./messages.ts";

/** Link between a page and its controller. */
export interface ControllerCode {
  /** Random text, known to the page and the controller. */
  readonly code: string;
  /** Participant whose view is steered. */
  readonly owner: number;
}

/** Parameter of the page's address. */
export const CONTROLLER_PARAMETER = "controller";
const FORM = /^([a-z0-9]{6,32})-(\d{1,9})$/;

export function formatController({ code, owner }: ControllerCode): string {
  return `${code}-${owner}`;
}

/** Reads the parameter of an address; null for a page that is no controller. */
export function parseController(search: string): ControllerCode | null {
  const [, code = "", owner = ""] =
    FORM.exec(new URLSearchParams(search).get(CONTROLLER_PARAMETER) ?? "") ?? [];
  return code === "" ? null : { code, owner: Number(owner) };
}

/** Returns the link to open on the phone; `page` is this page's address. */
export function controllerLink(page: string, controller: ControllerCode, token: string): string {
  const url = new URL(page);
  url.search = "";
  url.searchParams.set(CONTROLLER_PARAMETER, formatController(controller));
  url.hash = token === "" ? "" : `token=${encodeURIComponent(token)}`;
  return url.href;
}

function find(
  participants: readonly Participant[],
  is: (person: Participant) => boolean,
): Participant | null {
  return participants.find((person) => !person.isAway && is(person)) ?? null;
}

/** The page's side: follows the controller after it was touched. */
export class ControlledPage {
  readonly #name: string;
  /** The controller has followed this page, so it shows the same view. */
  #isArmed = false;

  /** `name` is that of the controller in the session. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Returns the controller, if it is there. */
  controller(participants: readonly Participant[]): Participant | null {
    return find(participants, (person) => person.name === this.#name);
  }

  /** Returns the participant to follow now; null for no change. */
  next(you: number, participants: readonly Participant[]): number | null {
    const controller = this.controller(participants);
    if (!controller) {
      this.#isArmed = false;
      return null;
    }
    if (controller.follows === you) {
      this.#isArmed = true;
      return null;
    }
    if (!this.#isArmed || controller.follows !== null) return null;
    this.#isArmed = false;
    return controller.id;
  }
}

export type ControllerPhase = "alone" | "resting" | "steering";

/** The phone's side: follows the person until it is touched, and again when the person moves the view. */
export class ControllingPhone {
  readonly #owner: number;
  #hasBegun = false;
  #wasFollowed = false;
  phase: ControllerPhase = "alone";

  constructor(owner: number) {
    this.#owner = owner;
  }

  /** Returns the participant to follow now; null for no change. */
  next(you: number, participants: readonly Participant[]): number | null {
    const owner = find(participants, (person) => person.id === this.#owner);
    const own = find(participants, (person) => person.id === you);
    if (!owner || !own) {
      this.phase = "alone";
      this.#hasBegun = this.#wasFollowed = false;
      return null;
    }
    const isFollowed = owner.follows === you;
    const hasEnded = this.#wasFollowed && !isFollowed;
    this.#wasFollowed = isFollowed;
    this.phase = isFollowed ? "steering" : "resting";
    if (isFollowed || own.follows === owner.id) {
      this.#hasBegun = true;
      return null;
    }
    if (this.#hasBegun && !hasEnded) return null;
    this.#hasBegun = true;
    return owner.id;
  }
}
