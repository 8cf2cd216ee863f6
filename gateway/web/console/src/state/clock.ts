/** The time, for durations that grow and moments that pass. */

import { signal } from "@preact/signals";

/** Milliseconds, renewed every second while the page is visible. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);
