//! Guards for JSON of unknown shape.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = Readonly<Record<string, Json>>;

export function parseJson(text: string): Json {
  return JSON.parse(text) as Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

export function isFinite(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** A whole number of at least zero that a double holds exactly. */
export function isCount(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

export function textOr(value: Json | undefined, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

/** Reads a scalar of the server: a number, or a string for numbers that JSON lacks. */
export function scalarOr(value: Json | undefined, otherwise: number): number {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value.trim() === "") return otherwise;
  const number = Number(value); // "NaN", "Infinity", "-Infinity", long integers
  return Number.isNaN(number) && value !== "NaN" ? otherwise : number;
}
