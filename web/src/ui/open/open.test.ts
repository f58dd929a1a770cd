import { afterEach, describe, expect, it, vi } from "vitest";

import { batchName, dropProblem, MAX_DROPPED_FILES, upload, uploadAddress } from "./uploads.ts";
import { texts } from "../../texts/texts.ts";
import { filterPlaces, parseOpened, parsePlaces } from "./places.ts";

describe("lists of what can be opened", () => {
  it("are read; entries of unknown kinds are left out", () => {
    const list = parsePlaces({
      place: "/data",
      parent: "/",
      entries: [
        { name: "deeper", kind: "folder", location: "/data/deeper", about: "" },
        { name: "a.npy", kind: "data", location: "/data/a.npy", about: "npy" },
        { name: "?", kind: "tape", location: "x" },
        { kind: "data" },
        7,
      ],
      further: 3,
      left_out: 2,
      may_open_files: true,
      max_upload_bytes: 1024,
    });
    expect(list.entries.map((entry) => entry.name)).toEqual(["deeper", "a.npy"]);
    expect([list.parent, list.further, list.leftOut, list.mayOpenFiles]).toEqual(["/", 3, 2, true]);
    expect(filterPlaces(list.entries, "A np").map((entry) => entry.name)).toEqual(["a.npy"]);
    for (const wrong of [null, [], { entries: 1 }]) expect(() => parsePlaces(wrong)).toThrow("places");
  });

  it("lead to pages of the same node only", () => {
    for (const path of ["room/3/", "../../room/12/", "../../", "./"])
      expect(parseOpened({ path })).toBe(path);
    for (const path of [
      "",
      "https://evil.example/",
      "//evil.example/",
      "/room/1/",
      "room/x/",
      "room/1/../..",
      "javascript:1",
    ])
      expect(() => parseOpened({ path }), path).toThrow();
    expect(() => parseOpened(null)).toThrow();
  });
});

describe("dropped files", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("that are cancelled are not said to be lost", async () => {
    class Request extends EventTarget {
      readonly upload = new EventTarget();
      readonly open = vi.fn();
      readonly send = vi.fn();
      readonly abort = () => this.dispatchEvent(new Event("abort"));
    }
    vi.stubGlobal("XMLHttpRequest", Request);
    const stop = new AbortController();
    const file = new File([], "a.npy");
    const sent = upload({ address: "x", token: "", file, onProgress: vi.fn(), signal: stop.signal });
    stop.abort();
    await expect(sent).rejects.toThrow(texts.open.uploadCancelled);
  });

  it("are refused with what to do instead", () => {
    expect(dropProblem([{ size: 5 }], 10)).toBeNull();
    expect(dropProblem([{ size: 5 }, { size: 6 }], 10)).toContain("by their path");
    expect(dropProblem([{ size: 5 }], 0)).toBe(texts.open.dropElsewhere);
    expect(dropProblem([], 10)).toBe(texts.open.dropFolder);
    expect(
      dropProblem(
        Array.from({ length: MAX_DROPPED_FILES + 1 }, () => ({ size: 0 })),
        10,
      ),
    ).toContain("256");
  });

  it("are sent below the page, without its token", () => {
    const address = uploadAddress("http://127.0.0.1:26775/room/2/?x#token=secret", "ab12", "a b/ü#.nrrd");
    expect(address).toBe("http://127.0.0.1:26775/room/2/upload/ab12/a%20b%2F%C3%BC%23.nrrd");
    expect(batchName()).toMatch(/^[0-9a-f]{16}$/);
  });
});
