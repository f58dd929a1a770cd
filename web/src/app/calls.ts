//! Operations of the node that components of the page call: their items and ends, by the number of the call.

import { texts } from "../texts/texts.ts";
import type { Json, JsonObject } from "../json.ts";
import type { CalledOperation, ToWorker } from "../worker/messages.ts";

/** Maximum number of calls under way: the value under the pointer, a pin, a few measurements, and a file. */
export const MAX_CALLS = 8;

/** Receiver of a call's items and of its end, after which nothing more arrives. */
export interface CallReceiver {
  item(item: Json, bulk: Uint8Array<ArrayBuffer>): void;
  /** `reason` is null after success. */
  ended(reason: string | null): void;
}

export class Calls {
  readonly #send: (message: ToWorker) => void;
  readonly #receivers = new Map<number, CallReceiver>();
  #id = 0;

  constructor(send: (message: ToWorker) => void) {
    this.#send = send;
  }

  /** Calls an operation; returns a function that cancels it. Beyond the limit the call ends at once. */
  call(name: CalledOperation, parameters: JsonObject, receiver: CallReceiver): () => void {
    if (this.#receivers.size >= MAX_CALLS) {
      receiver.ended(texts.connection.tooManyMeasurements);
      return () => undefined;
    }
    const id = ++this.#id;
    this.#receivers.set(id, receiver);
    this.#send({ kind: "call", id, name, parameters });
    return () => {
      if (!this.#receivers.has(id)) return;
      this.#send({ kind: "cancelCall", id });
      this.ended(id, "cancelled");
    };
  }

  called(id: number, item: Json, bulk: Uint8Array<ArrayBuffer>): void {
    this.#receivers.get(id)?.item(item, bulk);
  }

  ended(id: number, reason: string | null): void {
    const receiver = this.#receivers.get(id);
    this.#receivers.delete(id);
    receiver?.ended(reason);
  }

  /** Ends all calls: their answers cannot arrive any more. */
  disconnected(): void {
    for (const id of [...this.#receivers.keys()]) this.ended(id, texts.connection.lost);
  }
}
