/** `RunStore` holds the state of one run and tells who watches it. How frames change a state is in `reduce/`. */

import type { Frame } from "./frames.ts";
import { reduce } from "./reduce/reduce.ts";
import { type RunState, emptyRun } from "./state.ts";

/** Holds the state of one run and tells its watchers, at most once per turn of the event loop. */
export class RunStore {
  #state: RunState;
  #pending: Frame[] = [];
  #scheduled = false;
  readonly #watchers = new Set<(state: RunState) => void>();
  readonly #schedule: (flush: () => void) => void;

  /** `schedule` says when a batch of frames is applied; by default with the next task. */
  constructor(jobId: string, schedule: (flush: () => void) => void = (flush) => void setTimeout(flush, 0)) {
    this.#state = emptyRun(jobId);
    this.#schedule = schedule;
  }

  /** The state as of the last batch. */
  get state(): RunState {
    return this.#state;
  }

  /** Takes a frame; it is applied with the next batch. */
  push(frame: Frame): void {
    this.#pending.push(frame);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#schedule(() => this.flush());
  }

  /** Applies what has been taken so far. */
  flush(): void {
    this.#scheduled = false;
    const frames = this.#pending;
    this.#pending = [];
    const next = reduce(this.#state, frames);
    if (next === this.#state) return;
    this.#state = next;
    for (const watcher of this.#watchers) {
      try {
        watcher(next);
      } catch (error) {
        // One bad watcher must not starve the others; report it where the runtime reports its own.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  /** Calls back after every batch that changed something; returns how to stop. */
  subscribe(watcher: (state: RunState) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}
