/**
 * Typed access to the gateway's REST interface. Every failure, of the network or of the gateway, is an {@link ApiError}.
 * Following a run is in `events.ts` and `sse.ts`.
 */

import type {
  Asset,
  AssetFilter,
  CancelledGeneration,
  CancelledJob,
  CostGrouping,
  Costs,
  Generation,
  GenerationFilter,
  Issue,
  Job,
  JobFilter,
  JobRequest,
  Model,
  Page,
} from "./types.ts";
import { isRecord } from "./read.ts";

/** A request that did not succeed. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status, or 0 when no answer came. */
  readonly status: number;
  /** The kind of failure: `not_found`, `invalid_argument`, `unavailable` and so on. */
  readonly code: string;
  /** The exact reason, for programs: `JOB_NOT_FOUND`; empty when none was given. */
  readonly reason: string;
  /** What to quote when asking an operator about it. */
  readonly requestId: string | null;
  /** Faults of single fields of the request. */
  readonly fields: readonly { field: string; description: string }[];

  constructor(parts: {
    status: number;
    code: string;
    reason?: string;
    message: string;
    requestId?: string | null;
    fields?: readonly { field: string; description: string }[];
  }) {
    super(parts.message);
    this.status = parts.status;
    this.code = parts.code;
    this.reason = parts.reason ?? "";
    this.requestId = parts.requestId ?? null;
    this.fields = parts.fields ?? [];
  }
}

/** How to reach a gateway. */
export interface ApiOptions {
  /** Scheme, host and port, without a trailing slash; empty means the page's own origin. */
  base?: string;
  /** Sent as a bearer token when given. */
  token?: string;
  /** Milliseconds until a request is given up. */
  timeoutMs?: number;
  /** For tests and unusual runtimes. */
  fetch?: typeof fetch;
}

type Query = Record<string, string | number | boolean | undefined>;

const PREFIX = "/api/v1";

/** The gateway's REST interface. */
export class Api {
  readonly #base: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor(options: ApiOptions = {}) {
    this.#base = options.base ?? "";
    this.#token = options.token;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Starts a run. */
  submitJob(request: JobRequest, signal?: AbortSignal): Promise<Job> {
    return this.#json("POST", "/jobs", {}, signal, request);
  }

  /** Lists runs, newest first. */
  async jobs(filter: JobFilter = {}, signal?: AbortSignal): Promise<Page<Job>> {
    const body = await this.#json<{ jobs: Job[]; next: string | null }>("GET", "/jobs", { ...filter }, signal);
    return { items: body.jobs, next: body.next };
  }

  /** Reads one run, with its graph. */
  job(id: string, signal?: AbortSignal): Promise<Job> {
    return this.#json("GET", `/jobs/${encodeURIComponent(id)}`, {}, signal);
  }

  /** Asks a run to stop. */
  cancelJob(id: string, signal?: AbortSignal): Promise<CancelledJob> {
    return this.#json("POST", `/jobs/${encodeURIComponent(id)}/cancel`, {}, signal);
  }

  /** Lists rows of the ledger, newest first. */
  async generations(filter: GenerationFilter = {}, signal?: AbortSignal): Promise<Page<Generation>> {
    const body = await this.#json<{ generations: Generation[]; next: string | null }>(
      "GET",
      "/generations",
      { ...filter },
      signal,
    );
    return { items: body.generations, next: body.next };
  }

  /** Reads one row of the ledger. */
  generation(id: string, signal?: AbortSignal): Promise<Generation> {
    return this.#json("GET", `/generations/${encodeURIComponent(id)}`, {}, signal);
  }

  /** Asks a provider call to stop. */
  cancelGeneration(id: string, signal?: AbortSignal): Promise<CancelledGeneration> {
    return this.#json("POST", `/generations/${encodeURIComponent(id)}/cancel`, {}, signal);
  }

  /** Adds up what the ledger's rows have cost. */
  costs(group?: CostGrouping, filter: GenerationFilter = {}, signal?: AbortSignal): Promise<Costs> {
    return this.#json("GET", "/costs", { group, ...filter }, signal);
  }

  /** Lists stored artifacts, newest first. */
  async assets(filter: AssetFilter = {}, signal?: AbortSignal): Promise<Page<Asset>> {
    const body = await this.#json<{ assets: Asset[]; next: string | null }>("GET", "/assets", { ...filter }, signal);
    return { items: body.assets, next: body.next };
  }

  /** Reads what is known of one artifact. */
  asset(id: string, signal?: AbortSignal): Promise<Asset> {
    return this.#json("GET", `/assets/${encodeURIComponent(id)}`, {}, signal);
  }

  /** The address of an artifact's bytes. */
  assetUrl(id: string, options: { download?: boolean } = {}): string {
    return `${this.#base}${PREFIX}/assets/${encodeURIComponent(id)}/content${options.download ? "?download=1" : ""}`;
  }

  /** Reads the beginning of a text artifact, at most `bytes` long. */
  async assetText(id: string, bytes: number, signal?: AbortSignal): Promise<string> {
    const response = await this.#send(this.assetUrl(id), { headers: { range: `bytes=0-${bytes - 1}` } }, signal);
    // An empty artifact has no first byte, so asking for one is out of range.
    if (response.status === 416) return "";
    if (!response.ok) throw await failure(response);
    return response.text();
  }

  /** Lists the models that providers offer. */
  async models(filter: { provider?: string; capability?: string } = {}, signal?: AbortSignal): Promise<Model[]> {
    return (await this.#json<{ models: Model[] }>("GET", "/models", filter, signal)).models;
  }

  /** Checks a graph without running it. */
  check(request: JobRequest, signal?: AbortSignal): Promise<{ ok: boolean; issues: Issue[] }> {
    return this.#json("POST", "/check", {}, signal, request);
  }

  /** Opens the event stream of a run; `sse.ts` reads it. */
  async openEvents(jobId: string, afterSeq: number, signal?: AbortSignal): Promise<Response> {
    const url = `${this.#base}${PREFIX}/jobs/${encodeURIComponent(jobId)}/events?after_seq=${afterSeq}`;
    const response = await this.#send(url, { headers: { accept: "text/event-stream" } }, signal, false);
    if (!response.ok) throw await failure(response);
    return response;
  }

  async #json<T>(method: string, path: string, query: Query, signal?: AbortSignal, body?: unknown): Promise<T> {
    const init: RequestInit = { method, headers: { accept: "application/json" } };
    if (body !== undefined) {
      init.headers = { accept: "application/json", "content-type": "application/json" };
      init.body = JSON.stringify(body);
    }
    const response = await this.#send(`${this.#base}${PREFIX}${path}${search(query)}`, init, signal);
    if (!response.ok) throw await failure(response);
    try {
      // The one place where an answer is taken at its word: the shapes are the gateway's contract.
      return (await response.json()) as T;
    } catch {
      throw new ApiError({
        status: response.status,
        code: "internal",
        reason: "BAD_ANSWER",
        message: "The gateway's answer is not JSON.",
        requestId: response.headers.get("x-request-id"),
      });
    }
  }

  async #send(url: string, init: RequestInit, signal: AbortSignal | undefined, limited = true): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.#token) headers.set("authorization", `Bearer ${this.#token}`);
    const timeout = limited ? AbortSignal.timeout(this.#timeoutMs) : undefined;
    const signals = [signal, timeout].filter((one) => one !== undefined);
    try {
      return await this.#fetch(url, { ...init, headers, signal: signals.length > 0 ? AbortSignal.any(signals) : null });
    } catch {
      if (signal?.aborted) {
        throw new ApiError({ status: 0, code: "cancelled", reason: "ABORTED", message: "The request was given up." });
      }
      if (timeout?.aborted) {
        throw new ApiError({
          status: 0,
          code: "deadline_exceeded",
          reason: "TIMEOUT",
          message: "The gateway did not answer in time.",
        });
      }
      throw new ApiError({
        status: 0,
        code: "unavailable",
        reason: "NETWORK",
        message: "The gateway cannot be reached.",
      });
    }
  }
}

function search(query: Query): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.set(key, String(value));
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

/** Turns an answer that is not a success into an error, whether or not its body is the gateway's own. */
async function failure(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("x-request-id");
  const plain = {
    status: response.status,
    code: codeOf(response.status),
    message: `The gateway answered ${response.status}.`,
    requestId,
  };
  let body: unknown;
  try {
    body = await response.json();
  } catch {
    return new ApiError(plain);
  }
  const error = isRecord(body) && isRecord(body["error"]) ? body["error"] : null;
  if (error === null) return new ApiError(plain);
  return new ApiError({
    status: response.status,
    code: textOr(error["code"], plain.code),
    reason: textOr(error["reason"], ""),
    message: textOr(error["message"], plain.message),
    requestId: textOr(error["request_id"], requestId ?? "") || null,
    fields: fieldsOf(error["details"]),
  });
}

function fieldsOf(details: unknown): { field: string; description: string }[] {
  if (!isRecord(details) || !Array.isArray(details["fields"])) return [];
  return details["fields"].filter(isRecord).map((one) => ({
    field: textOr(one["field"], ""),
    description: textOr(one["description"], ""),
  }));
}

function codeOf(status: number): string {
  switch (status) {
    case 400:
      return "invalid_argument";
    case 401:
      return "unauthenticated";
    case 403:
      return "permission_denied";
    case 404:
      return "not_found";
    case 409:
      return "failed_precondition";
    case 416:
      return "out_of_range";
    case 429:
      return "resource_exhausted";
    case 499:
      return "cancelled";
    case 501:
      return "unimplemented";
    case 502:
    case 503:
      return "unavailable";
    case 504:
      return "deadline_exceeded";
    default:
      return "internal";
  }
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
