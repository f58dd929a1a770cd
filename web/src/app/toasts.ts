//! Short messages on the screen: few at once, and all but errors disappear after some seconds.

import type { Severity } from "../session/messages.ts";
import type { Toast } from "./state.ts";

/** Maximum number of messages on the screen. */
export const MAX_TOASTS = 3;
/** Time for which a message is shown. */
const TOAST_MILLIS = 6000;

export class Toasts {
  readonly #onChange: (list: readonly Toast[]) => void;
  #list: readonly Toast[] = [];
  #id = 0;

  constructor(onChange: (list: readonly Toast[]) => void) {
    this.#onChange = onChange;
  }

  /** Shows a message; one of the same text is replaced. */
  show(severity: Severity, text: string, action: Toast["action"] = null): void {
    const id = ++this.#id;
    const others = this.#list.filter((toast) => toast.text !== text);
    this.#set([...others, { id, severity, text, action }].slice(-MAX_TOASTS));
    if (severity !== "error") {
      setTimeout(() => {
        this.dismiss(id);
      }, TOAST_MILLIS);
    }
  }

  dismiss(id: number): void {
    this.#set(this.#list.filter((toast) => toast.id !== id));
  }

  #set(list: readonly Toast[]): void {
    this.#list = list;
    this.#onChange(list);
  }
}
