//! Handling of the page's messages. No error leaves the handler: the page takes an error of the worker for one that cannot
//! be mended.

import { texts } from "../texts/texts.ts";
import { describeThrown } from "../wire/error.ts";
import { WireError } from "../wire/codec.ts";
import { Connection, type Post } from "./connection.ts";
import type { ToWorker } from "./messages.ts";
import { webSocketTransport, type Transport } from "./transport.ts";

/** Returns a function that handles messages; `post` answers them. Connections are WebSockets unless `transport` is given. */
export function messageHandler(post: Post, transport?: Transport): (message: ToWorker) => void {
  let connection: Connection | null = null;
  const handle = (message: ToWorker) => {
    switch (message.kind) {
      case "connect":
        connection?.close();
        connection = null;
        connection = new Connection(
          transport ?? webSocketTransport(message.url),
          message.token,
          message.join,
          post,
        );
        return;
      case "note":
        connection?.note(message.note);
        return;
      case "openPane":
        connection?.openPane(message.pane, message.join);
        return;
      case "paneNote":
        connection?.paneNote(message.pane, message.note);
        return;
      case "closePane":
        connection?.closePane(message.pane);
        return;
      case "interpret":
        connection?.interpret(message.meaning);
        return;
      case "stats":
        connection?.stats(message);
        return;
      case "call":
        if (connection) connection.call(message);
        else post({ kind: "callEnded", id: message.id, reason: texts.connection.none });
        return;
      case "cancelCall":
        connection?.cancelCall(message.id);
        return;
    }
  };
  return (message) => {
    try {
      handle(message);
    } catch (error) {
      const reason = describeThrown(error);
      // A token that is too long for the wire is the only error of the protocol in a connection's beginning.
      if (message.kind === "connect")
        post({ kind: "refused", reason, needsToken: error instanceof WireError });
      else post({ kind: "message", severity: "warning", text: reason });
    }
  };
}
