//! Keeps the page connected: starts the worker, connects, and reconnects with exponential backoff.

import type { PixelSize } from "../draw/picture.ts";
import { backoffMillis } from "../session/backoff.ts";
import type { Join, Note } from "../session/messages.ts";
import { texts } from "../texts/texts.ts";
import { messageHandler } from "../worker/handler.ts";
import type { FromWorker, ToWorker } from "../worker/messages.ts";
import type { Transport } from "../worker/transport.ts";
import type { ConnectionState } from "./state.ts";

/** Delay after which a new window size is sent; later sizes restart it. */
const RESIZE_MILLIS = 120;

export interface ConnectionManagerOptions {
  readonly token: () => string;
  /** Secret of a participant who comes back: a token of their own if they are a guest, for when their link is replaced. */
  readonly ownToken: () => string;
  readonly join: () => Join;
  readonly receive: (message: FromWorker) => void;
  readonly onState: (state: ConnectionState) => void;
  /** Called when the node was told another size of the picture. */
  readonly onSize: () => void;
  /** Way to the node in a page without a connection of its own, whose messages are then handled by the page's thread: they pass
   * through it anyway, and frames of other programs often allow no worker. */
  readonly transport?: Transport | undefined;
}

/** Takes messages for the network, in a worker or in the page. */
interface MessageTaker {
  postMessage(message: ToWorker): void;
}

export class ConnectionManager {
  readonly #options: ConnectionManagerOptions;
  readonly #worker: MessageTaker | null;
  #attempt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #resizeTimer: ReturnType<typeof setTimeout> | undefined;
  #isOpen = false;
  #hasWorkerStarted = false;
  /** Token of the connection under way. */
  #offered = "";
  /** Size of the picture that the node knows of, and the size to tell it. */
  #sentSize: PixelSize = { width: 0, height: 0 };
  #size: PixelSize = this.#sentSize;

  constructor(options: ConnectionManagerOptions) {
    this.#options = options;
    this.#worker = options.transport ? this.#inPage(options.transport) : this.#inWorker();
    window.addEventListener("online", () => {
      if (!this.#isOpen) this.connect();
    });
  }

  #inPage(transport: Transport): MessageTaker {
    const handle = messageHandler((message) => {
      this.#receive(message);
    }, transport);
    // Later, as from a worker: an answer never comes while the request is being made.
    const postMessage = (message: ToWorker) => {
      queueMicrotask(() => {
        handle(message);
      });
    };
    return { postMessage };
  }

  #inWorker(): MessageTaker | null {
    if (!isSupported()) return null;
    const worker = new Worker(new URL("../worker/worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => {
      this.#receive(event.data);
    });
    worker.addEventListener("error", (event) => {
      this.#workerFailed(event.message);
    });
    return worker;
  }

  /** Size of the picture that the node knows of. */
  get size(): PixelSize {
    return this.#sentSize;
  }

  connect(): void {
    this.#connect(this.#options.token());
  }

  #connect(token: string): void {
    clearTimeout(this.#timer);
    if (!this.#worker) {
      this.#options.onState({ kind: "unsupported", reason: texts.notices.noBrowserSupport });
      return;
    }
    this.#isOpen = false;
    this.#offered = token;
    if (token !== "" && !this.#options.transport && isUnencrypted(window.location)) {
      this.#options.onState({ kind: "unsupported", reason: texts.notices.unencrypted });
      return;
    }
    this.#options.onState({ kind: "connecting" });
    const join = this.#options.join();
    this.#sentSize = this.#size = { width: join.width, height: join.height };
    this.send({ kind: "connect", url: wireAddress(document.baseURI), token, join });
  }

  send(message: ToWorker): void {
    this.#worker?.postMessage(message);
  }

  note(note: Note): void {
    if (this.#isOpen) this.send({ kind: "note", note });
  }

  resize(size: PixelSize): void {
    clearTimeout(this.#resizeTimer);
    this.#resizeTimer = setTimeout(() => {
      this.#size = size;
      this.#sendSize();
    }, RESIZE_MILLIS);
  }

  /** Sends the size if it has changed; before the page has joined, it waits. */
  #sendSize(): void {
    const { width, height } = this.#size;
    const isSent = width === this.#sentSize.width && height === this.#sentSize.height;
    if (isSent || !this.#isOpen) return;
    this.#sentSize = this.#size;
    this.note({ kind: "resize", width, height });
    this.#options.onSize();
  }

  #receive(message: FromWorker): void {
    this.#hasWorkerStarted = true;
    if (message.kind === "joined") {
      this.#isOpen = true;
      this.#attempt = 0;
      this.#sendSize();
    }
    if (message.kind === "refused") {
      const wasOpen = this.#isOpen;
      this.#isOpen = false;
      const own = this.#options.ownToken();
      if (message.needsToken && !wasOpen && own !== "" && own !== this.#offered) {
        this.#connect(own);
        return;
      }
      this.#options.onState({ kind: "refused", reason: message.reason, needsToken: message.needsToken });
    }
    if (message.kind === "disconnected") this.#disconnected(message.reason, message.isBusy);
    this.#options.receive(message);
  }

  /** Handles an error that the worker did not: its script cannot run, or a running connection is in an unknown state. */
  #workerFailed(message: string): void {
    if (this.#hasWorkerStarted) this.#disconnected(texts.notices.workerFailed(message));
    else this.#options.onState({ kind: "unsupported", reason: texts.notices.noWorker });
  }

  #disconnected(reason: string, isBusy = false): void {
    this.#isOpen = false;
    clearTimeout(this.#timer);
    const wait = backoffMillis(this.#attempt++, Math.random());
    this.#options.onState({ kind: "waiting", reason, isBusy, untilMillis: performance.now() + wait });
    this.#timer = setTimeout(() => {
      this.connect();
    }, wait);
  }
}

/** True if others on the network can read what the page sends. */
export function isUnencrypted(page: { readonly protocol: string; readonly hostname: string }): boolean {
  return page.protocol !== "https:" && !isLoopback(page.hostname);
}

/** True for names of the machine on which the browser runs. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** Returns the URL of the WebSocket, relative to the page, so that prefixes added by a proxy work. */
export function wireAddress(page: string): string {
  const url = new URL("wire", page);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.hash = "";
  url.search = "";
  return url.href;
}

function isSupported(): boolean {
  return "WebSocket" in window && "Worker" in window && "createImageBitmap" in window;
}
