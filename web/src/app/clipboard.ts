//! Copying of text, also without the browser's clipboard interface (plain HTTP from another host).

export async function copyText(text: string): Promise<boolean> {
  const clipboard = (navigator as { readonly clipboard?: Clipboard }).clipboard;
  if (clipboard) {
    try {
      await clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed; the older method may be.
    }
  }
  return copyBySelection(text);
}

function copyBySelection(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  // Deprecated, but the only method without a secure context.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isCopied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}
