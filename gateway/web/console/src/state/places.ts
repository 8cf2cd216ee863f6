/**
 * Where the groups of a run stand on its page: what people came for comes first. Nodes that made media, then the text of
 * models, then what needs to be seen for another reason; everything else is put away at the end.
 */

import type { Graph, RunState } from "@atelier/client";
import { streamedText } from "@atelier/client";
import type { Group, Tile } from "./tiles.ts";

/** The groups of a page, each list in the order of the graph. */
export interface Placed {
  /** Media first, then the text of models, then errors and text that is being written. */
  lead: Group[];
  /** What nodes in between have handed on. */
  rest: Group[];
}

const RANKS = ["media", "words", "aside", "rest"] as const;
type Rank = (typeof RANKS)[number];

/** Sorts groups by what they are worth to a reader. */
export function placesOf(groups: readonly Group[], state: RunState, graph: Graph | undefined): Placed {
  const upstream = upstreamOf(graph);
  const ranked = groups.map((group) => ({ group, rank: rankOf(group, groups, state, upstream) }));
  const of = (rank: Rank): Group[] => ranked.filter((one) => one.rank === rank).map((one) => one.group);
  return { lead: [...of("media"), ...of("words"), ...of("aside")], rest: of("rest") };
}

function rankOf(group: Group, groups: readonly Group[], state: RunState, upstream: (id: string) => ReadonlySet<string>): Rank {
  const { node, tiles } = group;
  const wanted = tiles.some((one) => one.state !== "ready" && one.call !== null && !givesWords(one.call.capability));
  if (wanted || hasOwnMedia(group, groups, upstream)) return "media";
  if (isModel(node.type) || tiles.some((one) => one.call !== null && one.call.nodeId === node.id)) return "words";
  if (node.error !== null) return "aside";
  const display = state.display.get(node.id);
  const writes = display !== undefined && node.status === "running" && !/\.control\./.test(node.type) && streamedText(display.value) !== null;
  return writes ? "aside" : "rest";
}

/** Whether a node has media that no node before it had: the others only hand theirs on. */
function hasOwnMedia(group: Group, groups: readonly Group[], upstream: (id: string) => ReadonlySet<string>): boolean {
  const media = group.tiles.flatMap(mediaOf);
  if (media.length === 0) return false;
  const before = upstream(group.node.id);
  const handed = new Set<string>();
  for (const { node, tiles } of groups) {
    // In a circle each stands before the other, and neither counts as the one that hands on.
    if (before.has(node.id) && !upstream(node.id).has(group.node.id)) for (const tile of tiles) for (const one of mediaOf(tile)) handed.add(one);
  }
  return media.some((one) => !handed.has(one));
}

function mediaOf({ leaf }: Tile): string[] {
  if (leaf === null || leaf.kind === "text" || leaf.kind === "json" || leaf.kind === "document") return [];
  const content = leaf.assetId ?? leaf.url;
  return content === null ? [] : [content];
}

/** The nodes that stand anywhere before a node. */
function upstreamOf(graph: Graph | undefined): (id: string) => ReadonlySet<string> {
  const sources = new Map<string, string[]>();
  for (const { source, target } of graph?.edges ?? []) sources.set(target, [...(sources.get(target) ?? []), source]);
  const known = new Map<string, ReadonlySet<string>>();
  return (id) => {
    const before = known.get(id) ?? reach(id, sources);
    known.set(id, before);
    return before;
  };
}

function reach(id: string, sources: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [...(sources.get(id) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(sources.get(next) ?? []));
  }
  return seen;
}

function isModel(type: string): boolean {
  return /(^|\.)(agents|generators)\./.test(type);
}

function givesWords(capability: string): boolean {
  return /^generate_(message|text)$|_to_text$|transcri|embed/.test(capability);
}

/** How many results a group holds: one for each time its node committed. */
export function resultsOf(group: Group): number {
  const ready = group.tiles.filter((one) => one.state === "ready");
  return new Set(ready.map((one) => one.index ?? one.key)).size;
}

const NOUNS: Readonly<Record<string, string>> = { image: "image", audio: "sound", video: "video" };

/** What a group holds, as a count and its noun: media of one kind by their name, anything else as results. */
export function contentsOf(group: Group): { n: number; noun: string } {
  const ready = group.tiles.filter((one) => one.state === "ready");
  const kinds = new Set(ready.map((one) => one.leaf?.kind ?? ""));
  const noun = kinds.size === 1 ? NOUNS[[...kinds][0] ?? ""] : undefined;
  return noun === undefined ? { n: resultsOf(group), noun: "result" } : { n: ready.length, noun };
}
