/**
 * The JSON shapes of the gateway's REST interface, as they travel: snake case, times as ISO 8601 text, money as decimal
 * text. The frames of a run are in `frames.ts`.
 */

/** What a run is doing. The last three but `suspended` are final. */
export type JobStatus = "queued" | "running" | "completed" | "failed" | "cancelled" | "suspended";

/** What became of one call to a provider. */
export type GenerationStatus = "running" | "completed" | "failed" | "cancelled" | "interrupted";

/** One fault that checking a graph found. */
export interface Issue {
  code: string;
  node_id: string | null;
  node_type: string | null;
  property: string | null;
  message: string;
}

/** What the ledger says a run has cost so far. */
export interface JobCost {
  /** Decimal text, or null when nothing of the run could be priced. */
  amount: string | null;
  currency: string;
  /** Calls that ended without a price: money may have been spent, the amount is unknown. */
  unpriced: number;
  /** Calls that have not ended. */
  running: number;
}

/** One node of a graph, with the keys a viewer needs. */
export interface GraphNode {
  id: string;
  type: string;
  name?: string;
  properties?: Record<string, unknown>;
  data?: Record<string, unknown>;
}

/** One edge of a graph. */
export interface GraphEdge {
  id?: string;
  source: string;
  sourceHandle: string;
  target: string;
  targetHandle: string;
}

/** A workflow's graph. */
export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** One run of a graph. */
export interface Job {
  id: string;
  workflow_id: string | null;
  name: string;
  status: JobStatus;
  error: string | null;
  error_code: string | null;
  issues: Issue[];
  params: Record<string, unknown>;
  /** Values by the public name of the output node; null until the run has ended. */
  outputs: Record<string, unknown[]> | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  duration_ms: number | null;
  /** The number of the newest frame of the run. */
  last_seq: number;
  artifact_count: number;
  cost: JobCost;
  /** Present in the answer for one job only. */
  graph?: Graph;
}

/** Who asked for a generation, and from where. */
export interface Origin {
  surface?: string | null;
  thread_id?: string | null;
  tool_call_id?: string | null;
  request_id?: string | null;
  job_id?: string | null;
  node_id?: string | null;
  node_type?: string | null;
  invocation_id?: string | null;
}

/** One request that a generation sent to its provider. */
export interface Attempt {
  no: number;
  kind: string;
  request_id: string | null;
  cost: string | null;
  currency: string | null;
  submission_status: string | null;
  provider_status: string | null;
}

/** Where the ledger stands in learning the real charge. */
export interface Reconcile {
  state: string;
  attempts: number;
  next_at: string | null;
  reconciled_at: string | null;
  error: string | null;
}

/** One row of the ledger: one call to a provider. */
export interface Generation {
  id: string;
  status: GenerationStatus;
  provider: string;
  model: string;
  capability: string;
  /** Decimal text; null means not known, which is never the same as nothing. */
  cost: string | null;
  currency: string | null;
  estimated_cost: string | null;
  billing_unit: string | null;
  quantity: string | null;
  unit_price: string | null;
  price_source: string | null;
  asset_ids: string[];
  job_id: string | null;
  node_id: string | null;
  workflow_id: string | null;
  origin: Origin;
  params: Record<string, unknown>;
  provider_request_id: string | null;
  attempts: Attempt[];
  reconcile: Reconcile;
  facets: { submission: string | null; provider: string | null; output: string | null };
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  duration_ms: number | null;
  error: string | null;
  error_code: string | null;
  background: boolean;
  version: number;
  metadata: Record<string, unknown>;
  input_tokens: number | null;
  output_tokens: number | null;
}

/** A stored artifact. */
export interface Asset {
  id: string;
  name: string;
  content_type: string;
  size_bytes: number;
  digest: string;
  uri: string;
  url: string;
  path: string | null;
  job_id: string | null;
  node_id: string | null;
  workflow_id: string | null;
  /** Which variant of the node it belongs to. */
  index: number | null;
  handle: string | null;
  element: number | null;
  generation_ids: string[];
  metadata: Record<string, unknown>;
  created_at: string;
}

/** What the calls of one group have cost. */
export interface CostGroup {
  key: string;
  costs: { amount: string; currency: string }[];
  amount: string | null;
  currency: string | null;
  call_count: number;
  completed_count: number;
  failed_count: number;
  cancelled_count: number;
  interrupted_count: number;
  unpriced_count: number;
  unsent_count: number;
  running_count: number;
}

/** How costs may be grouped. */
export type CostGrouping = "provider" | "model" | "capability" | "job" | "day" | "node";

/** Costs as a whole and by group. */
export interface Costs {
  total: CostGroup;
  groups: CostGroup[];
}

/** A model that a provider offers. */
export interface Model {
  provider: string;
  model: string;
  name: string;
  capabilities: string[];
  price: string | null;
  available: boolean;
  unavailable_reason: string | null;
}

/** A page of a list: the items and the cursor of the next page. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** What a run is started with: exactly one of `graph`, `workflow` and `workflow_id`. */
export interface JobRequest {
  graph?: Graph;
  workflow?: unknown;
  workflow_id?: string;
  params?: Record<string, unknown>;
  name?: string;
  job_id?: string;
  options?: {
    event_detail?: "full" | "outputs" | "terminal";
    asset_persistence?: "auto" | "temporary";
    strict?: boolean;
  };
}

/** Which jobs to list. */
export interface JobFilter {
  status?: string | undefined;
  workflow_id?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** Which generations to list or to add up. */
export interface GenerationFilter {
  status?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  capability?: string | undefined;
  job_id?: string | undefined;
  node_id?: string | undefined;
  thread_id?: string | undefined;
  workflow_id?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** Which assets to list. `content_type` is a whole media type or the part before the slash. */
export interface AssetFilter {
  job_id?: string | undefined;
  node_id?: string | undefined;
  content_type?: string | undefined;
  since?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** The answer to cancelling a run. */
export interface CancelledJob {
  job_id: string;
  cancelled: boolean;
  status: JobStatus;
}

/** The answer to cancelling a generation. */
export interface CancelledGeneration {
  generation_id: string;
  cancelled: boolean;
  status?: GenerationStatus;
  error?: string;
}
