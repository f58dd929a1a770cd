//! A WebSocket for tests: its server is played by hand.

import { decodeFrame, encodeFrame, type Frame } from "../wire/frames.ts";

export class FakeSocket {
  static readonly OPEN = 1;
  /** The newest socket. */
  static last: FakeSocket;
  readyState = 0;
  bufferedAmount = 0;
  /** True if the network does not accept data: sent data stay in the buffer. */
  isStalled = false;
  readonly sent: Frame[] = [];
  onopen: () => void = () => undefined;
  onmessage: (event: { readonly data: unknown }) => void = () => undefined;
  onclose: ((event: { readonly reason: string }) => void) | null = null;

  constructor() {
    FakeSocket.last = this;
  }

  open(): void {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
    this.receive({ kind: "welcome", version: 1, capabilities: [], program: "test", maxOperations: 16 });
  }

  send(bytes: Uint8Array): void {
    this.sent.push(decodeFrame(bytes));
    if (this.isStalled) this.bufferedAmount += bytes.length;
  }

  receive(frame: Frame): void {
    this.onmessage({ data: encodeFrame(frame).buffer });
  }

  close(): void {
    this.readyState = 3;
  }
}
