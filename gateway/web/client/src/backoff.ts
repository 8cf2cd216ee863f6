/** How long to wait before trying again. */

const FIRST_MS = 500;
const FACTOR = 1.6;
const MOST_MS = 15_000;

/** Milliseconds before the n-th try (from 0), spread by ±20 % so that many viewers do not come back at once. */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const base = Math.min(MOST_MS, FIRST_MS * FACTOR ** attempt);
  return Math.round(base * (0.8 + 0.4 * random()));
}

/** Waits, or returns early when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
