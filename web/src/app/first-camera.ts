//! Decides whether another size of the picture needs another camera: as long as nobody has moved the one that was chosen for the data,
//! neither this person nor whom they follow. Cameras are chosen before panels have their places, so the first size is rarely the last.
//! Pure.

import type { PixelSize } from "../draw/picture.ts";
import type { Camera } from "../view/schema.ts";

/** View with which a page joins or comes back. */
export interface JoinedCamera {
  /** Camera of the view; null if the node is still choosing it. */
  readonly camera: Camera | null;
  /** The view is a new one, and neither the link nor somebody else has chosen its camera. */
  readonly isNew: boolean;
  /** Size of the picture that the node was told. */
  readonly size: PixelSize;
}

export class FirstCamera {
  #isAutomatic = false;
  /** The newest camera; null while the node chooses it. */
  #camera: Camera | null = null;
  /** Size of the picture that the camera was chosen for; null if it was for none, as that which all new views of volumes have. */
  #size: PixelSize | null = null;
  /** Participant whose view is shown, null for the own one; undefined until the node has told it. */
  #leader: number | null | undefined;

  /** True if nobody has moved the camera that was chosen. */
  get isAutomatic(): boolean {
    return this.#isAutomatic;
  }

  /** Notes that the page has joined; whom it follows is told later. */
  joined({ camera, isNew, size }: JoinedCamera): void {
    this.#leader = undefined;
    if (isNew) {
      this.#isAutomatic = true;
      this.#size = camera === null ? size : null;
    } else if (this.#camera !== null && !isSame(camera, this.#camera)) this.#isAutomatic = false;
    this.#camera = camera;
  }

  /** Notes whom the page follows: their camera is theirs to change. */
  follows(leader: number | null): void {
    this.#leader = leader;
    if (leader !== null) this.#isAutomatic = false;
  }

  /** Notes a change by the person: null lets the node choose again, for the size that it knows. */
  moved(camera: Camera | null, size: PixelSize): void {
    if (camera === null) this.chosen(null, size);
    else {
      this.#isAutomatic = false;
      this.#camera = camera;
    }
  }

  /** Notes a camera that the page has chosen for a size, as the person wished; null if the node chooses it. */
  chosen(camera: Camera | null, size: PixelSize): void {
    this.#isAutomatic = true;
    this.#camera = camera;
    this.#size = size;
  }

  /** Notes a camera that the page has chosen by itself, as for another arrangement. */
  adjusted(camera: Camera | null): void {
    this.#camera = camera;
  }

  /** Notes the camera after a change by the node; `isSettling` while it chooses what belongs to another array. */
  incoming(camera: Camera | null, isSettling: boolean, size: PixelSize): void {
    const before = this.#camera;
    this.#camera = camera;
    if ((this.#leader ?? null) !== null || isSame(camera, before)) return;
    if (camera === null || isSettling) this.chosen(camera, size);
    // Of others, or of an earlier view. Without a camera before, it is the one that the node was asked for.
    else if (before !== null) this.#isAutomatic = false;
  }

  /** Returns true if a camera is to be chosen for this size of the picture, once for each. */
  take(size: PixelSize): boolean {
    if (!this.#isAutomatic || this.#leader !== null) return false;
    if (size.width === this.#size?.width && size.height === this.#size.height) return false;
    this.#size = size;
    return true;
  }
}

function isSame(a: Camera | null, b: Camera | null): boolean {
  if (!a || !b) return a === b;
  const numbers = ({ eye, target, up, projection }: Camera) =>
    "perspective" in projection
      ? [...eye, ...target, ...up, 0, projection.perspective.fov_y_rad]
      : [...eye, ...target, ...up, 1, projection.orthographic.height_world];
  const others = numbers(b);
  return numbers(a).every((number, i) => number === others[i]);
}
