/**
 * From frames to the state of a run. `reduce` is pure: the same frames give the same state, in one batch or one by one,
 * and a frame that was applied before changes nothing. `RunStore` holds a state, and tells who watches it.
 */

import {
  type Chunk,
  type Frame,
  type GenerationComplete,
  type JobUpdate,
  type NodeUpdate,
  type OutputUpdate,
  type Prediction,
  isTerminal,
} from "./frames.ts";
import * as money from "./money.ts";
import { isRecord } from "./read.ts";
import {
  type Display,
  type LogLine,
  type NodeState,
  type NodeStatus,
  type Progress,
  type RunState,
  type RunStatus,
  type Variant,
  emptyRun,
} from "./state.ts";

const MAX_LOG_LINES = 2_000;
const MAX_DISPLAY_PIECES = 1_024;

/** The state after these frames, in their order; the same object when none of them said anything. */
export function reduce(state: RunState, frames: readonly Frame[]): RunState {
  const draft = new Draft(state);
  for (const frame of frames) apply(draft, frame);
  return draft.result();
}

/** A copy of a state that is made on the first write, and each of its maps on the first write to that map. */
class Draft {
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

  edges(): Map<string, Frame & { type: "edge_update" }> {
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

function apply(draft: Draft, frame: Frame): void {
  if (frame.job_id !== "" && frame.job_id !== draft.state.jobId) return;
  if (frame.job_seq !== null) {
    if (frame.job_seq <= draft.state.lastSeq) return;
    draft.set({ lastSeq: frame.job_seq });
  }
  if (frame.workflow_id !== null && draft.state.workflowId === null) draft.set({ workflowId: frame.workflow_id });
  switch (frame.type) {
    case "job_update":
      return jobUpdate(draft, frame);
    case "job_resumed":
      if (frame.replay_incomplete) draft.set({ incomplete: true });
      return;
    case "node_update":
      return nodeUpdate(draft, frame);
    case "generation_complete":
      return generationComplete(draft, frame);
    case "output_update":
      return outputUpdate(draft, frame);
    case "node_progress":
      if (draft.state.status === "cancelled") return;
      draft.progress().set(frame.node_id, { done: frame.progress, total: frame.total });
      return;
    case "edge_update":
      if (draft.state.status === "cancelled") return;
      draft.edges().set(frame.edge_id, frame);
      return;
    case "prediction":
      return prediction(draft, frame);
    case "log_update":
    case "notification":
      return draft.log({
        seq: frame.job_seq,
        nodeId: frame.node_id,
        nodeName: frame.node_name,
        severity: severityOf(frame.severity),
        content: frame.content,
      });
    case "chunk":
      return chunk(draft, frame);
    case "provider_call_failed":
      return draft.log({
        seq: frame.job_seq,
        nodeId: "",
        nodeName: frame.model === null ? frame.provider : `${frame.provider}/${frame.model}`,
        severity: "warning",
        content: frame.message,
      });
    case "error":
      return draft.log({ seq: frame.job_seq, nodeId: "", nodeName: "", severity: "error", content: frame.message });
    default:
      return unreachable(frame);
  }
}

function jobUpdate(draft: Draft, frame: JobUpdate): void {
  const status = runStatusOf(frame.status);
  if (status === null) return;
  draft.set({
    status,
    message: frame.message,
    queuePosition: status === "queued" ? frame.queue_position : null,
    duration: frame.duration ?? draft.state.duration,
  });
  if (frame.error !== null) draft.set({ error: frame.error });
  if (frame.error_code !== null) draft.set({ errorCode: frame.error_code });
  if (frame.issues.length > 0) draft.set({ issues: frame.issues });
  if (frame.outputs !== null) draft.set({ outputs: new Map(Object.entries(frame.outputs)) });
  if (isTerminal(frame.status)) settle(draft);
}

/** Nothing works any more once the run has ended: no spinner may stay behind. */
function settle(draft: Draft): void {
  for (const node of draft.state.nodes.values()) {
    if (node.status === "running" || node.status === "waiting") draft.nodes().set(node.id, { ...node, status: "stopped" });
  }
  for (const [nodeId, slots] of draft.state.variants) {
    for (const variant of slots.values()) {
      if (variant.status === "running") draft.variants(nodeId).delete(variant.index);
    }
  }
}

function nodeUpdate(draft: Draft, frame: NodeUpdate): void {
  if (draft.state.status === "cancelled") return;
  const before = draft.state.nodes.get(frame.node_id);
  // A warning is told by a log line; it moves nothing.
  const status = nodeStatusOf(frame.status) ?? before?.status ?? "running";
  draft.nodes().set(frame.node_id, {
    id: frame.node_id,
    name: frame.node_name || before?.name || frame.node_id,
    type: frame.node_type || before?.type || "",
    status,
    error: frame.error ?? (status === "failed" ? (before?.error ?? "failed") : null),
    properties: { ...before?.properties, ...frame.properties },
  });
  const newest = newestOf(draft.state, frame.node_id);
  switch (status) {
    case "running":
      if (newest === null) put(draft, frame.node_id, 0, { status: "running" });
      return;
    case "failed":
      // An error has no index: it settles the newest slot, which keeps what it has already got.
      put(draft, frame.node_id, newest?.index ?? 0, { status: "error", error: frame.error });
      return;
    case "completed":
      // The artifacts came with their own frames. A placeholder that none of them filled is a node that made nothing.
      if (newest?.status === "running") draft.variants(frame.node_id).delete(newest.index);
      return;
    case "waiting":
    case "suspended":
    case "stopped":
      return;
    default:
      return unreachable(status);
  }
}

function generationComplete(draft: Draft, frame: GenerationComplete): void {
  const known = draft.state.nodes.get(frame.node_id);
  if (known === undefined) {
    draft.nodes().set(frame.node_id, {
      id: frame.node_id,
      name: frame.node_name || frame.node_id,
      type: frame.node_type,
      status: "running",
      error: null,
      properties: {},
    });
  }
  put(draft, frame.node_id, frame.index ?? 0, {
    status: "completed",
    outputs: frame.outputs,
    properties: frame.properties,
    generationIds: frame.generation_ids,
    error: null,
  });
  if (draft.state.display.has(frame.node_id)) draft.display().delete(frame.node_id);
}

function put(draft: Draft, nodeId: string, index: number, patch: Partial<Omit<Variant, "nodeId" | "index">>): void {
  const slots = draft.variants(nodeId);
  const before: Variant = slots.get(index) ?? {
    nodeId,
    index,
    status: "running",
    outputs: {},
    properties: {},
    generationIds: [],
    error: null,
  };
  slots.set(index, { ...before, ...patch });
}

function newestOf(state: RunState, nodeId: string): Variant | null {
  return [...(state.variants.get(nodeId)?.values() ?? [])].at(-1) ?? null;
}

function outputUpdate(draft: Draft, frame: OutputUpdate): void {
  const before = draft.state.display.get(frame.node_id);
  const value = displayable(frame.value, frame.output_type);
  draft.display().set(frame.node_id, {
    value: frame.disposition === "replace" || before === undefined ? value : appended(before.value, value),
    outputType: frame.output_type,
  });
}

function chunk(draft: Draft, frame: Chunk): void {
  if (frame.node_id === "" || frame.content_type !== "text" || frame.content === "") return;
  const before = draft.state.display.get(frame.node_id);
  draft.display().set(frame.node_id, {
    value: before === undefined ? frame.content : appended(before.value, frame.content),
    outputType: "str",
  });
}

function appended(before: unknown, value: unknown): unknown[] {
  const pieces = Array.isArray(before) ? [...before, value] : [before, value];
  return pieces.length > MAX_DISPLAY_PIECES && !pieces.every((one) => typeof one === "string")
    ? pieces.slice(-MAX_DISPLAY_PIECES)
    : pieces;
}

const MEDIA_TYPES: ReadonlySet<string> = new Set(["image", "audio", "video", "html", "document", "model_3d"]);

function displayable(value: unknown, outputType: string): unknown {
  if (!MEDIA_TYPES.has(outputType)) return value;
  if (!isRecord(value)) return { type: outputType, data: value };
  return typeof value["type"] === "string" ? value : { type: outputType, ...value };
}

function prediction(draft: Draft, frame: Prediction): void {
  const before = draft.state.predictions.get(frame.id);
  draft.predictions().set(frame.id, {
    ...frame,
    node_id: frame.node_id || (before?.node_id ?? ""),
    started_at: frame.started_at ?? before?.started_at ?? null,
    currency: frame.currency ?? before?.currency ?? null,
  });
  const cost = draft.state.cost;
  const amounts = new Map(cost.amounts);
  if (before) book(amounts, before, money.subtract);
  book(amounts, frame, money.add);
  draft.set({
    cost: {
      amounts,
      unpriced: cost.unpriced + Number(isUnpriced(frame)) - Number(before !== undefined && isUnpriced(before)),
      running: cost.running + Number(isOpen(frame)) - Number(before !== undefined && isOpen(before)),
    },
  });
}

function book(amounts: Map<string, string>, call: Prediction, sum: (left: string, right: string) => string): void {
  if (call.cost === null) return;
  const currency = call.currency ?? "USD";
  amounts.set(currency, sum(amounts.get(currency) ?? "0", call.cost));
}

function isOpen(call: Prediction): boolean {
  return call.status === "running" || call.status === "pending" || call.status === "booting";
}

function isUnpriced(call: Prediction): boolean {
  return call.cost === null && !isOpen(call);
}

function runStatusOf(status: string): RunStatus | null {
  switch (status) {
    case "queued":
    case "running":
    case "completed":
    case "failed":
    case "cancelled":
    case "suspended":
      return status;
    case "pending":
      return "queued";
    case "error":
    case "timed_out":
      return "failed";
    case "paused":
      return "suspended";
    default:
      return null;
  }
}

function nodeStatusOf(status: string): NodeStatus | null {
  switch (status) {
    case "pending":
      return "waiting";
    case "booting":
    case "starting":
    case "running":
      return "running";
    case "completed":
      return "completed";
    case "error":
      return "failed";
    case "suspended":
      return "suspended";
    default:
      return null;
  }
}

function severityOf(severity: string): LogLine["severity"] {
  return severity === "error" || severity === "warning" ? severity : "info";
}

function unreachable(value: never): void {
  void value;
}

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
