//! The page's address: holds the view of a link, follows the view on the screen, and carries the token once (see
//! `session/token.ts`).

import { pageStorage } from "./storage.ts";
import type { EmbeddingSettings } from "../notebook/embedding.ts";
import { storeToken, storedToken } from "../session/token.ts";
import { formatFragment, parseFragment, type Fragment, type PaneCameras } from "../view/fragment.ts";
import type { View, ViewPatch } from "../view/schema.ts";

/** Time without changes after which the address follows the view: browsers limit the rate of its changes. */
const REMEMBER_MILLIS = 500;

/** Parts of another link that is opened on the page. */
export interface NewLink {
  /** View settings; null if it has no view. */
  readonly view: ViewPatch | null;
  readonly marks: string | null;
  readonly panes: PaneCameras;
}

export class Address {
  /** View settings of the link. */
  readonly patch: ViewPatch;
  readonly warnings: readonly string[];
  /** Switches of the marks: of the link at first, later those to put into links. */
  marks: string | null = null;
  /** Cameras of further pictures: of the link at first, later those to put into links. */
  panes: PaneCameras = {};
  /** Called when another link is opened on this page. */
  onNewLink: (link: NewLink) => void = () => undefined;
  readonly #settings: EmbeddingSettings | null;
  #token = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `settings` are those of a page in a frame, whose own address means nothing. */
  constructor(settings: EmbeddingSettings | null = null) {
    this.#settings = settings;
    if (settings) {
      this.#token = settings.token;
      this.patch = settings.view;
      this.warnings = [];
      return;
    }
    const first = this.#read();
    this.patch = first.view?.patch ?? {};
    this.warnings = first.view?.warnings ?? [];
    this.marks = first.marks;
    this.panes = first.panes;
    window.addEventListener("hashchange", () => {
      const { view, marks, panes } = this.#read();
      this.panes = panes;
      this.onNewLink({ view: view?.patch ?? null, marks, panes });
    });
  }

  get token(): string {
    return this.#token;
  }

  setToken(token: string): void {
    this.#token = token;
    if (!this.#settings) storeToken(pageStorage("sessionStorage"), window.location.pathname, token);
  }

  /** Puts the view into the address, so that a reload or a bookmark shows it again. */
  remember(view: View): void {
    clearTimeout(this.#timer);
    if (this.#settings) return;
    this.#timer = setTimeout(() => {
      window.history.replaceState(null, "", formatFragment(view, null, this.marks, this.panes));
    }, REMEMBER_MILLIS);
  }

  linkTo(view: View, withToken: boolean): string {
    const page = (this.#settings?.link ?? window.location.href).replace(/#.*$/, "");
    return page + formatFragment(view, withToken ? this.#token : null, this.marks, this.panes);
  }

  /** Reads the link, and takes the token out of it. */
  #read(): Omit<Fragment, "token"> {
    const { token, view, marks, panes } = parseFragment(window.location.hash);
    if (token !== null) {
      this.setToken(token);
      const rest = window.location.hash
        .replace(/^#/, "")
        .split("&")
        .filter((part) => !part.startsWith("token="));
      const page = window.location.pathname + window.location.search;
      window.history.replaceState(null, "", rest.length > 0 ? `${page}#${rest.join("&")}` : page);
    } else if (this.#token === "") {
      this.#token = storedToken(pageStorage("sessionStorage"), window.location.pathname);
    }
    return { view, marks, panes };
  }
}
