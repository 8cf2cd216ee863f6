/** A run's results: a section for each node, and one for all that is put away. */

import { type RunState, streamedText } from "@atelier/client";
import { useState } from "preact/hooks";
import { Icon } from "../components/icons.tsx";
import { Media } from "../components/media.tsx";
import { More, Status } from "../components/small.tsx";
import { TileCard } from "../components/tile.tsx";
import { count, typeName } from "../state/format.ts";
import { contentsOf, resultsOf } from "../state/places.ts";
import type { Group, Tile } from "../state/tiles.ts";

/** So many tiles of a node are drawn at first, and with every step after that. */
const TILES = 120;

/** Where on the page a node's results are. */
export function sectionId(group: Group): string {
  return `node-${group.node.id}`;
}

/** One node with what it has made, is making, or could not make. */
export function GroupSection({ group, state, open }: { group: Group; state: RunState; open: (key: string) => void }) {
  const { node, title } = group;
  const [most, setMost] = useState(TILES);
  const display = state.display.get(node.id);
  // What is being made is already to be seen: a grey tile beside it would say it twice.
  const tiles = display === undefined ? group.tiles : group.tiles.filter((one) => one.state !== "pending");
  if (tiles.length === 0 && display === undefined && node.error === null) return null;
  const { n, noun } = contentsOf(group);
  const progress = state.progress.get(node.id);
  return (
    <section class="group" id={sectionId(group)} aria-label={title}>
      <header class="group-head">
        <h2 title={node.type || undefined}>{title}</h2>
        <Status status={node.status} compact />
        <span class="muted">{n > 0 ? count(n, noun) : typeName(node.type)}</span>
        {node.status === "running" && progress !== undefined && progress.done < progress.total && (
          <progress value={progress.done} max={progress.total} aria-label={`Progress of ${title}`} />
        )}
      </header>
      {node.error !== null && !tiles.some((one) => one.error === node.error) && (
        <p class="group-error" role="alert">
          <Icon name="alert" /> {node.error}
        </p>
      )}
      {display !== undefined && <Live value={display.value} running={node.status === "running"} />}
      {tiles.length > 0 && (
        <ul class={`tiles ${wordy(tiles) ? "tiles-words" : ""}`}>
          {tiles.slice(0, most).map((tile) => (
            <TileCard key={tile.key} tile={tile} open={open} />
          ))}
        </ul>
      )}
      {tiles.length > most && <More shown={most} more load={() => setMost(most + TILES)} />}
    </section>
  );
}

function wordy(tiles: readonly Tile[]): boolean {
  return tiles.every((one) => one.leaf !== null && (one.leaf.kind === "text" || one.leaf.kind === "document" || one.leaf.kind === "json"));
}

/** What a node shows before its artifact is there. */
function Live({ value, running }: { value: unknown; running: boolean }) {
  const text = streamedText(value);
  if (text !== null) {
    return (
      <div class={`live prose ${running ? "live-on" : ""}`} aria-live="off">
        {text}
      </div>
    );
  }
  const last: unknown = Array.isArray(value) ? value.at(-1) : value;
  if (typeof last === "object" && last !== null && "type" in last && last.type === "image" && "uri" in last && typeof last.uri === "string") {
    const at = { handle: "output", element: null };
    return (
      <div class="live live-picture">
        <Media leaf={{ kind: "image", at, url: /^(\/|data:image\/)/.test(last.uri) ? last.uri : null, assetId: null, type: "image" }} small label="Preview" />
      </div>
    );
  }
  return <p class="live muted">{Array.isArray(value) ? `${count(value.length, "piece")} received` : "receiving"}</p>;
}

/** What the nodes in between have handed on: closed until somebody asks, unless there is nothing else. */
export function Rest({ groups, state, alone, open }: { groups: readonly Group[]; state: RunState; alone: boolean; open: (key: string) => void }) {
  const [wish, setWish] = useState<boolean | null>(null);
  const filled = groups.filter((one) => one.tiles.length > 0);
  if (filled.length === 0) return null;
  const n = filled.reduce((sum, one) => sum + resultsOf(one), 0);
  const isOpen = wish ?? alone;
  return (
    <section class="rest" aria-label="Other results">
      <button type="button" class="rest-toggle" aria-expanded={isOpen} onClick={() => setWish(!isOpen)}>
        <Icon name="right" class="turn" /> {alone ? "Results" : "Other results"} ({n})
      </button>
      {isOpen && (
        <div class="rest-groups">
          {filled.map((group) => (
            <GroupSection key={group.node.id} group={group} state={state} open={open} />
          ))}
        </div>
      )}
    </section>
  );
}
