import { describe, expect, test } from "vitest";
import { reachAddress, whyNoSocket } from "./reach.ts";

const answering = (status: number, text: string) => () => Promise.resolve(new Response(text, { status }));

describe("why there is no WebSocket", () => {
  test("the server is asked beside the socket", () => {
    expect(reachAddress("wss://viz.example.org/run42/wire")).toBe("https://viz.example.org/run42/reach");
    expect(reachAddress("ws://127.0.0.1:26775/wire")).toBe("http://127.0.0.1:26775/reach");
  });

  test("what it says is told; where it would answer, the way there is named", async () => {
    const why = (status: number, text: string) => whyNoSocket("ws://a/wire", answering(status, text));
    expect(await why(200, "ok\n")).toMatch(/no WebSocket comes through/);
    expect(await why(403, "refused: the Origin is another site\n")).toBe(
      "refused: the Origin is another site",
    );
    expect(await why(502, "<html>bad gateway")).toMatch(/answers 502/);
    const gone = () => Promise.reject(new TypeError("gone"));
    expect(await whyNoSocket("ws://a/wire", gone)).toBe("the server cannot be reached");
  });
});
