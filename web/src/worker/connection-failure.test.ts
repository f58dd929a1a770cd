import { describe, expect, test } from "vitest";
import { reachUrl, connectionFailureReason } from "./connection-failure.ts";

const answering = (status: number, text: string) => () => Promise.resolve(new Response(text, { status }));

describe("reason for a failed WebSocket", () => {
  test("is requested beside the socket", () => {
    expect(reachUrl("wss://viz.example.org/run42/wire")).toBe("https://viz.example.org/run42/reach");
    expect(reachUrl("ws://127.0.0.1:26775/wire")).toBe("http://127.0.0.1:26775/reach");
  });

  test("is the server's own text, or advice about the proxy", async () => {
    const why = (status: number, text: string) =>
      connectionFailureReason("ws://a/wire", answering(status, text));
    expect(await why(200, "ok\n")).toMatch(/no WebSocket comes through/);
    expect(await why(403, "refused: the Origin is another site\n")).toBe(
      "refused: the Origin is another site",
    );
    expect(await why(502, "<html>bad gateway")).toMatch(/answers 502/);
    const gone = () => Promise.reject(new TypeError("gone"));
    expect(await connectionFailureReason("ws://a/wire", gone)).toBe("the server cannot be reached");
  });

  test("is read only up to the length that is shown", async () => {
    let pulledBytes = 0;
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const text = pulledBytes === 0 ? "refused: " : "x";
        const chunk = new TextEncoder().encode(text.padEnd(400, "x"));
        pulledBytes += chunk.length;
        if (pulledBytes > 1 << 20) controller.close();
        else controller.enqueue(chunk);
      },
      cancel: () => {
        isCancelled = true;
      },
    });
    const answer = () => Promise.resolve(new Response(endless, { status: 403 }));
    const reason = await connectionFailureReason("ws://a/wire", answer);
    expect(reason).toBe("refused: ".padEnd(1000, "x"));
    expect(pulledBytes).toBeLessThan(3000);
    expect(isCancelled).toBe(true);
  });
});
