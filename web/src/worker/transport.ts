//! Ways of a connection to the viewing node: a WebSocket, or a message port whose other side relays the messages, as the
//! widget of a notebook does. Both carry the same messages.

import { texts } from "../texts/texts.ts";
import { connectionFailureReason } from "./connection-failure.ts";

/** The part of a WebSocket that a connection uses. */
export interface MessageSocket {
  readonly readyState: number;
  /** Bytes that were sent and not taken yet. */
  readonly bufferedAmount: number;
  binaryType: BinaryType;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(data: Uint8Array<ArrayBuffer>): void;
  close(): void;
}

/** Opens sockets, and knows why one did not open. */
export interface Transport {
  open(): MessageSocket;
  failureReason(): Promise<string>;
}

/** Ready state of an open socket, as that of a WebSocket. */
export const OPEN = 1;

export function webSocketTransport(url: string): Transport {
  return { open: () => new WebSocket(url), failureReason: () => connectionFailureReason(url) };
}

/** Messages to the relay: bytes for the node, or the number of bytes that the page has taken. */
export type ToRelay =
  ArrayBuffer | { readonly kind: "done"; readonly bytes: number } | { readonly kind: "close" };

/** Messages of the relay: bytes of the node, or what happened. */
export type FromRelay =
  | ArrayBuffer
  | { readonly kind: "opened" }
  /** The node has taken this number of bytes. */
  | { readonly kind: "taken"; readonly bytes: number }
  | { readonly kind: "closed"; readonly reason: string };

/** The part of a message port that a relayed connection uses. */
export interface RelayPort {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: ToRelay, transfer: Transferable[]): void;
  close(): void;
}

/** Opens connections over ports that `connect` returns, one for each connection. */
export function relayTransport(connect: () => RelayPort): Transport {
  let reason = texts.connection.kernelSilent;
  return {
    open: () =>
      new RelaySocket(connect(), (why) => {
        reason = why;
      }),
    failureReason: () => Promise.resolve(reason),
  };
}

/** A socket over a message port. The page's bytes count as buffered until the node has taken them. */
class RelaySocket implements MessageSocket {
  readonly #port: RelayPort;
  readonly #onReason: (reason: string) => void;
  readyState = 0;
  bufferedAmount = 0;
  binaryType: BinaryType = "arraybuffer";
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;

  constructor(port: RelayPort, onReason: (reason: string) => void) {
    this.#port = port;
    this.#onReason = onReason;
    port.onmessage = (event) => {
      this.#receive(event.data as FromRelay);
    };
  }

  send(data: Uint8Array<ArrayBuffer>): void {
    if (this.readyState !== OPEN) return;
    this.bufferedAmount += data.byteLength;
    const bytes = data.slice().buffer;
    this.#port.postMessage(bytes, [bytes]);
  }

  close(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.#port.postMessage({ kind: "close" }, []);
    this.#port.onmessage = null;
    this.#port.close();
  }

  #receive(message: FromRelay): void {
    if (message instanceof ArrayBuffer) {
      this.onmessage?.({ data: message } as MessageEvent);
      // The connection may have been closed by the message.
      if (this.readyState === OPEN) this.#port.postMessage({ kind: "done", bytes: message.byteLength }, []);
      return;
    }
    switch (message.kind) {
      case "opened":
        this.readyState = OPEN;
        this.onopen?.({} as Event);
        return;
      case "taken":
        this.bufferedAmount = Math.max(0, this.bufferedAmount - message.bytes);
        return;
      case "closed": {
        this.#onReason(message.reason);
        const { onclose } = this;
        this.close();
        onclose?.({ reason: message.reason } as CloseEvent);
        return;
      }
    }
  }
}
