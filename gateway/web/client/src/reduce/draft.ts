/** Writing a state without changing the one before it. */

import type { EdgeUpdate, Prediction } from "../frames.ts";
import type { Display, LogLine, NodeState, Progress, RunState, Variant } from "../state.ts";

const MAX_LOG_LINES = 2_000;

/** A copy of a state that is made on the first write, and each of its maps on the first write to that map. */
export class Draft {
  readonly #base: RunState;
  #state: RunState;
  readonly #owned = new Set<unknown>();

  constructor(base: RunState) {
    this.#base = base;
    this.#state = base;
  }

  get state(): RunState {
    return this.#state;
  }

  set(patch: Partial<RunState>): void {
    this.#state = { ...this.#state, ...patch };
  }

  nodes(): Map<string, NodeState> {
    const nodes = this.#own(this.#state.nodes);
    if (nodes !== this.#state.nodes) this.set({ nodes });
    return nodes;
  }

  variants(nodeId: string): Map<number, Variant> {
    const variants = this.#own(this.#state.variants);
    if (variants !== this.#state.variants) this.set({ variants });
    const slots = this.#own(variants.get(nodeId) ?? new Map<number, Variant>());
    variants.set(nodeId, slots);
    return slots;
  }

  display(): Map<string, Display> {
    const display = this.#own(this.#state.display);
    if (display !== this.#state.display) this.set({ display });
    return display;
  }

  progress(): Map<string, Progress> {
    const progress = this.#own(this.#state.progress);
    if (progress !== this.#state.progress) this.set({ progress });
    return progress;
  }

  edges(): Map<string, EdgeUpdate> {
    const edges = this.#own(this.#state.edges);
    if (edges !== this.#state.edges) this.set({ edges });
    return edges;
  }

  predictions(): Map<string, Prediction> {
    const predictions = this.#own(this.#state.predictions);
    if (predictions !== this.#state.predictions) this.set({ predictions });
    return predictions;
  }

  log(line: LogLine): void {
    const log = this.#state.log;
    const kept = log.length >= MAX_LOG_LINES ? log.slice(log.length - MAX_LOG_LINES + 1) : log;
    this.set({ log: [...kept, line] });
  }

  result(): RunState {
    return this.#state === this.#base ? this.#base : this.#state;
  }

  #own<K, V>(map: ReadonlyMap<K, V>): Map<K, V> {
    if (this.#owned.has(map)) return map as Map<K, V>;
    const copy = new Map(map);
    this.#owned.add(copy);
    return copy;
  }
}
