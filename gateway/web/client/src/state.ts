/** The state of one run as a viewer sees it, and reading from it. How frames change it is in `reduce/`. */

import type { EdgeUpdate, Prediction } from "./frames.ts";
import type { Fields } from "./read.ts";
import type { Issue, JobStatus } from "./types.ts";

/** A run's status; `unknown` until the first frame has said otherwise. */
export type RunStatus = JobStatus | "unknown";

/** What a node is doing; `stopped` when its run ended over it. */
export type NodeStatus = "waiting" | "running" | "completed" | "failed" | "suspended" | "stopped";

/** One node of a run. */
export interface NodeState {
  id: string;
  name: string;
  type: string;
  status: NodeStatus;
  error: string | null;
  properties: Fields;
}

/** One committed result of a node, or the placeholder of one that is being made. */
export interface Variant {
  nodeId: string;
  /** The k-th result of this node in this run. */
  index: number;
  status: "running" | "completed" | "error";
  /** Values by output handle. */
  outputs: Fields;
  properties: Fields;
  generationIds: readonly string[];
  error: string | null;
}

/** What a node shows while it works; gone as soon as the artifact is there. */
export interface Display {
  /** The last whole value, or the pieces so far. */
  value: unknown;
  outputType: string;
}

/** How far a node has come. */
export interface Progress {
  done: number;
  total: number;
}

/** A line of the run's log. */
export interface LogLine {
  seq: number | null;
  nodeId: string;
  nodeName: string;
  severity: "info" | "warning" | "error";
  content: string;
}

/** What the run's calls have cost, as far as its frames tell. */
export interface RunCost {
  /** Exact decimal text by currency. */
  amounts: ReadonlyMap<string, string>;
  /** Calls that ended without a price. */
  unpriced: number;
  /** Calls that have not ended. */
  running: number;
}

/** Everything the frames of a run say. Never changed in place. */
export interface RunState {
  readonly jobId: string;
  readonly workflowId: string | null;
  readonly status: RunStatus;
  readonly message: string | null;
  readonly queuePosition: number | null;
  readonly error: string | null;
  readonly errorCode: string | null;
  readonly issues: readonly Issue[];
  /** Seconds, when the final frame has told. */
  readonly duration: number | null;
  /** The highest frame number that was applied. */
  readonly lastSeq: number;
  /** Whether frames are missing that the server no longer keeps. */
  readonly incomplete: boolean;
  readonly nodes: ReadonlyMap<string, NodeState>;
  /** Variants by node, then by index. */
  readonly variants: ReadonlyMap<string, ReadonlyMap<number, Variant>>;
  /** Final values by the public name of the output node. */
  readonly outputs: ReadonlyMap<string, readonly unknown[]>;
  readonly display: ReadonlyMap<string, Display>;
  readonly progress: ReadonlyMap<string, Progress>;
  readonly edges: ReadonlyMap<string, EdgeUpdate>;
  readonly predictions: ReadonlyMap<string, Prediction>;
  readonly cost: RunCost;
  readonly log: readonly LogLine[];
}

/** The state before any frame. */
export function emptyRun(jobId: string): RunState {
  return {
    jobId,
    workflowId: null,
    status: "unknown",
    message: null,
    queuePosition: null,
    error: null,
    errorCode: null,
    issues: [],
    duration: null,
    lastSeq: 0,
    incomplete: false,
    nodes: new Map(),
    variants: new Map(),
    outputs: new Map(),
    display: new Map(),
    progress: new Map(),
    edges: new Map(),
    predictions: new Map(),
    cost: { amounts: new Map(), unpriced: 0, running: 0 },
    log: [],
  };
}

/** Whether the run has ended for good. */
export function hasEnded(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** A node's variants, lowest index first. */
export function variantsOf(state: RunState, nodeId: string): Variant[] {
  return [...(state.variants.get(nodeId)?.values() ?? [])].sort((a, b) => a.index - b.index);
}

/** A node's calls to providers, in the order they were seen. */
export function predictionsOf(state: RunState, nodeId: string): Prediction[] {
  return [...state.predictions.values()].filter((one) => one.node_id === nodeId);
}
