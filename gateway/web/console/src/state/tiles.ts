/**
 * From the state of a run, the ledger and the stored assets to what the run's page shows: groups of tiles, one group per
 * node. Pure; the drawing is in `components/tile.tsx`.
 */

import {
  type Asset,
  type Generation,
  type Graph,
  type Leaf,
  type NodeState,
  type Prediction,
  type RunState,
  type Variant,
  hasEnded,
  leavesOf,
  predictionsOf,
  variantsOf,
} from "@atelier/client";
import { tookOf, typeName } from "./format.ts";

/** One call to a provider, whether its news came from the run's frames or from the ledger. */
export interface Call {
  id: string;
  /** The node that called. */
  nodeId: string | null;
  status: string;
  provider: string;
  model: string;
  capability: string;
  params: Record<string, unknown>;
  cost: string | null;
  currency: string | null;
  durationMs: number | null;
  error: string | null;
}

/** One thing in a group: an artifact, or a call that has not become one. */
export interface Tile {
  key: string;
  nodeId: string;
  nodeName: string;
  /** Which variant; null for a call without one. */
  index: number | null;
  state: "ready" | "pending" | "failed" | "cancelled";
  leaf: Leaf | null;
  assetId: string | null;
  call: Call | null;
  prompt: string | null;
  seed: string | null;
  error: string | null;
}

/** A node with everything it has made. */
export interface Group {
  node: NodeState;
  title: string;
  tiles: Tile[];
}

/** What the page knows besides the frames. */
export interface Known {
  graph: Graph | undefined;
  generations: readonly Generation[];
  assets: readonly Asset[];
  assetUrl: (id: string) => string;
}

/** The run's nodes in the order of the graph, with their tiles. */
export function groupsOf(state: RunState, known: Known): Group[] {
  const calls = callsOf(state, known.generations);
  const assets = new Map(known.assets.map((one) => [one.id, one]));
  const nodes = nodesOf(state, known.graph);
  const titles = titlesOf(nodes);
  const groups = nodes.map((node) => {
    const title = titles.get(node.id) ?? node.id;
    const tiles = tilesOf(state, { id: node.id, title, status: node.status }, { calls, assets, assetUrl: known.assetUrl });
    return { node: stoppedIn(state, node, tiles), title, tiles };
  });
  if (state.variants.size === 0 && hasEnded(state.status)) addAssets(groups, calls, known);
  return groups;
}

/** A node whose call was cancelled with its run ended early, whatever it says of itself. */
function stoppedIn(state: RunState, node: NodeState, tiles: readonly Tile[]): NodeState {
  const early = state.status === "cancelled" && node.status === "completed" && tiles.some((one) => one.state === "cancelled");
  return early ? { ...node, status: "stopped" } : node;
}

function callsOf(state: RunState, generations: readonly Generation[]): Map<string, Call> {
  const calls = new Map<string, Call>();
  for (const one of state.predictions.values()) calls.set(one.id, fromPrediction(one));
  for (const one of generations) {
    // The ledger knows of charges that were stated later; the frames know of ends that were not read yet.
    const before = calls.get(one.id);
    if (before === undefined || one.status !== "running" || before.status === "running") calls.set(one.id, fromGeneration(one));
  }
  return calls;
}

function fromPrediction(one: Prediction): Call {
  return {
    id: one.id,
    nodeId: one.node_id,
    status: one.status,
    provider: one.provider,
    model: one.model,
    capability: one.capability,
    params: one.params,
    cost: one.cost,
    currency: one.currency,
    durationMs: one.duration === null ? null : one.duration * 1_000,
    error: one.error,
  };
}

function fromGeneration(one: Generation): Call {
  return {
    id: one.id,
    nodeId: one.node_id,
    status: one.status,
    provider: one.provider,
    model: one.model,
    capability: one.capability,
    params: one.params,
    cost: one.cost,
    currency: one.currency,
    durationMs: tookOf(one),
    error: one.error,
  };
}

function nodesOf(state: RunState, graph: Graph | undefined): NodeState[] {
  const nodes: NodeState[] = [];
  for (const { id, type, name } of graph?.nodes ?? []) {
    const seen = state.nodes.get(id);
    if (seen !== undefined) nodes.push(seen);
    else if (!/\.(constant|input)\./i.test(type)) {
      const status = hasEnded(state.status) ? "stopped" : "waiting";
      nodes.push({ id, name: name ?? "", type, status, error: null, properties: {} });
    }
  }
  for (const node of state.nodes.values()) if (!nodes.some((one) => one.id === node.id)) nodes.push(node);
  return nodes;
}

/** A node's own name, else the name of its type; where several nodes would be called the same, their ids tell them apart. */
function titlesOf(nodes: readonly NodeState[]): Map<string, string> {
  const titles = new Map(nodes.map((node) => [node.id, titleOf(node)]));
  const times = new Map<string, number>();
  for (const title of titles.values()) times.set(title, (times.get(title) ?? 0) + 1);
  for (const [id, title] of titles) if ((times.get(title) ?? 0) > 1 && title !== id) titles.set(id, `${title} · ${id}`);
  return titles;
}

function titleOf({ id, name, type }: NodeState): string {
  if (name !== "" && name !== id && name !== type) return name;
  return type === "" ? id : typeName(type);
}

type Maker = Pick<NodeState, "id" | "status"> & { title: string };

interface Index {
  calls: ReadonlyMap<string, Call>;
  assets: ReadonlyMap<string, Asset>;
  assetUrl: (id: string) => string;
}

function tilesOf(state: RunState, node: Maker, index: Index): Tile[] {
  const variants = variantsOf(state, node.id);
  const tiles = variants.flatMap((variant) => variantTiles(node, variant, index));
  const used = new Set(variants.flatMap((one) => one.generationIds));
  const open = predictionsOf(state, node.id).filter((one) => !used.has(one.id));
  for (const { id } of open) {
    const call = index.calls.get(id);
    if (call === undefined) continue;
    const tileState = openState(call, state, node);
    if (tileState !== null) tiles.push({ ...bare(node, `call:${id}`), state: tileState, ...told(call), error: call.error });
  }
  return tiles;
}

function openState(call: Call, state: RunState, node: Maker): Tile["state"] | null {
  switch (call.status) {
    case "failed":
    case "interrupted":
      return "failed";
    case "cancelled":
      return "cancelled";
    case "completed":
      // The provider is done and the artifact is on its way.
      return node.status === "running" && !hasEnded(state.status) ? "pending" : null;
    default:
      return hasEnded(state.status) ? "cancelled" : "pending";
  }
}

function variantTiles(node: Maker, variant: Variant, { calls, assets, assetUrl }: Index): Tile[] {
  const leaves = leavesOf(variant.outputs, assetUrl);
  return leaves.map((leaf) => {
    const assetId = "assetId" in leaf ? leaf.assetId : null;
    const asset = assetId === null ? undefined : assets.get(assetId);
    const ids = asset !== undefined && asset.generation_ids.length > 0 ? asset.generation_ids : variant.generationIds;
    const call = ids.map((id) => calls.get(id)).find((one) => one !== undefined) ?? null;
    const tile = bare(node, `${variant.index}:${leaf.at.handle}:${leaf.at.element ?? ""}`);
    const stated = told(call);
    return {
      ...tile,
      ...stated,
      index: variant.index,
      leaf,
      assetId,
      prompt: stated.prompt ?? promptOf(variant.properties) ?? promptOf(asset?.metadata ?? {}),
    };
  });
}

function bare(node: Pick<Maker, "id" | "title">, key: string): Tile {
  return {
    key: `${node.id}:${key}`,
    nodeId: node.id,
    nodeName: node.title,
    index: null,
    state: "ready",
    leaf: null,
    assetId: null,
    call: null,
    prompt: null,
    seed: null,
    error: null,
  };
}

function told(call: Call | null): Pick<Tile, "call" | "prompt" | "seed"> {
  const seed = call?.params["seed"];
  return {
    call,
    prompt: call === null ? null : promptOf(call.params),
    seed: typeof seed === "number" || typeof seed === "string" ? String(seed) : null,
  };
}

/** What a call was asked for, in its own words. */
export function promptOf(params: Record<string, unknown>): string | null {
  for (const key of ["prompt", "text", "input"]) {
    const value = params[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return null;
}

/** For runs whose frames are no longer kept: their artifacts are. */
function addAssets(groups: Group[], calls: ReadonlyMap<string, Call>, known: Known): void {
  const sorted = [...known.assets].sort((a, b) => (a.index ?? 0) - (b.index ?? 0) || a.created_at.localeCompare(b.created_at));
  for (const asset of sorted) {
    const nodeId = asset.node_id ?? "";
    let group = groups.find((one) => one.node.id === nodeId);
    if (group === undefined) {
      const node: NodeState = { id: nodeId, name: nodeId || "run", type: "", status: "completed", error: null, properties: {} };
      group = { node, title: titleOf(node), tiles: [] };
      groups.push(group);
    }
    const call = asset.generation_ids.map((id) => calls.get(id)).find((one) => one !== undefined) ?? null;
    const tile = bare({ id: nodeId, title: group.title }, `asset:${asset.id}`);
    const stated = told(call);
    group.tiles.push({
      ...tile,
      ...stated,
      index: asset.index,
      leaf: leafOfAsset(asset, known.assetUrl),
      assetId: asset.id,
      prompt: stated.prompt ?? promptOf(asset.metadata),
    });
  }
}

/** A stored artifact as a value to show. */
export function leafOfAsset(asset: Asset, assetUrl: (id: string) => string): Leaf {
  const at = { handle: asset.handle ?? "output", element: asset.element };
  const found = { at, url: assetUrl(asset.id), assetId: asset.id };
  const main = asset.content_type.split("/")[0] ?? "";
  if (main === "image" || main === "audio" || main === "video") return { kind: main, type: main, ...found };
  if (main === "text" || asset.content_type === "application/json") return { kind: "document", type: "text", ...found };
  return { kind: "file", type: asset.content_type, ...found };
}
