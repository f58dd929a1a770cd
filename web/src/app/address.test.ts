//! Links that are opened on an open page.

import { afterEach, describe, expect, it, vi } from "vitest";

import { Address, type NewLink } from "./address.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("another link on an open page", () => {
  it("is told with its view and marks; without a view nothing of the view changes", () => {
    const page = Object.assign(new EventTarget(), {
      location: { hash: "", pathname: "/", search: "" },
      history: { replaceState: vi.fn() },
    });
    vi.stubGlobal("window", page);
    const address = new Address();
    const links: NewLink[] = [];
    address.onNewLink = (link) => links.push(link);
    for (const hash of ['#view={"time":3}&marks=axes', "#token=secret"]) {
      page.location.hash = hash;
      page.dispatchEvent(new Event("hashchange"));
    }
    expect(links).toEqual([
      { view: { time: 3 }, marks: "axes", panes: {} },
      { view: null, marks: null, panes: {} },
    ]);
    expect(address.token).toBe("secret");
  });
});
