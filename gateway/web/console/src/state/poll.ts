/** Reading something again and again while somebody looks at it. */

import { ApiError } from "@atelier/client";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { reachable } from "./gateway.ts";

export interface Polled<T> {
  /** The newest answer; the one before while another key is being read. */
  data: T | undefined;
  /** Whether `data` belongs to what was asked before. */
  stale: boolean;
  error: ApiError | undefined;
  /** Reads at once. */
  reload: () => void;
}

interface Held<T> {
  key: string;
  data: T | undefined;
  error: ApiError | undefined;
}

const MOST_REMEMBERED = 40;
const remembered = new Map<string, { data: unknown; text: string }>();

/**
 * Reads `load` now and again after `every` milliseconds while the page is visible; null reads once, a function decides by
 * the newest answer. `key` says what is read: another key is another question. An answer equal to the last one changes
 * nothing, so nothing is drawn again.
 */
export function usePoll<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  every: number | null | ((data: T | undefined) => number | null) = 2_000,
): Polled<T> {
  const [held, setHeld] = useState<Held<T>>({ key, data: recall<T>(key), error: undefined });
  const [round, setRound] = useState(0);
  const latest = useRef({ load, every });
  latest.current = { load, every };

  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let busy = false;

    const read = async (): Promise<void> => {
      if (busy || document.hidden) return;
      busy = true;
      clearTimeout(timer);
      try {
        const data = await latest.current.load(controller.signal);
        if (controller.signal.aborted) return;
        reachable.value = true;
        const text = JSON.stringify(data);
        const same = remembered.get(key)?.text === text;
        if (!same) remember(key, data, text);
        const kept = recall<T>(key);
        setHeld((before) => (same && before.key === key && before.data !== undefined && !before.error ? before : { key, data: kept, error: undefined }));
      } catch (error) {
        if (controller.signal.aborted) return;
        const failure = error instanceof ApiError ? error : new ApiError({ status: 0, code: "internal", message: String(error) });
        if (failure.status === 0) reachable.value = false;
        setHeld((before) => ({ key, data: before.key === key ? before.data : recall<T>(key), error: failure }));
      } finally {
        busy = false;
        const { every: rhythm } = latest.current;
        const wait = typeof rhythm === "function" ? rhythm(recall<T>(key)) : rhythm;
        if (wait !== null && !controller.signal.aborted) timer = setTimeout(() => void read(), wait);
      }
    };
    const seen = (): void => void (document.hidden ? clearTimeout(timer) : read());
    document.addEventListener("visibilitychange", seen);
    void read();
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, round]);

  const reload = useCallback(() => setRound((before) => before + 1), []);
  const current = held.key === key;
  const known = current ? held.data : recall<T>(key);
  return {
    data: known ?? held.data,
    stale: !current && known === undefined,
    error: current ? held.error : undefined,
    reload,
  };
}

function recall<T>(key: string): T | undefined {
  // The key names the question, so the answer under it has the type the question asked for.
  return remembered.get(key)?.data as T | undefined;
}

function remember(key: string, data: unknown, text: string): void {
  remembered.delete(key);
  remembered.set(key, { data, text });
  const oldest = remembered.keys().next().value;
  if (remembered.size > MOST_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
}
