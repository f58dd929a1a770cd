//! Color maps for the mock server: knots with straight lines between them.

const KNOTS: Readonly<Record<string, readonly string[]>> = {
  viridis: ["440154", "414487", "2a788e", "22a884", "7ad151", "fde725"],
  magma: ["000004", "3b0f70", "8c2981", "de4968", "fe9f6d", "fcfdbf"],
  inferno: ["000004", "420a68", "932667", "dd513a", "fca50a", "fcffa4"],
  gray: ["000000", "ffffff"],
};

export function colormap(name: string): Uint8Array {
  const knots = KNOTS[name] ?? KNOTS.gray ?? [];
  const channel = (knot: number, c: number) =>
    parseInt((knots[knot] ?? "000000").slice(2 * c, 2 * c + 2), 16);
  return Uint8Array.from({ length: 768 }, (_, i) => {
    const place = (Math.floor(i / 3) / 255) * (knots.length - 1);
    const knot = Math.min(Math.floor(place), knots.length - 2);
    const share = place - knot;
    return Math.round((1 - share) * channel(knot, i % 3) + share * channel(knot + 1, i % 3));
  });
}

export function colormapsJson(): string {
  const maps = Object.keys(KNOTS).map((name) => [name, Buffer.from(colormap(name)).toString("base64")]);
  return JSON.stringify(Object.fromEntries(maps));
}
