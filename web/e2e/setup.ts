//! Address of the viewer under test.

import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    baseUrl: string;
  }
}

export default function setup(project: TestProject): void {
  const baseUrl = process.env.CORRIDOR_E2E_URL;
  if (baseUrl === undefined) {
    throw new Error("expected CORRIDOR_E2E_URL, the address of a running viewer with its token");
  }
  project.provide("baseUrl", baseUrl);
}
