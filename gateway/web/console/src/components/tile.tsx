/** One thing a node has made, or is making, or could not make. */

import { price } from "../state/format.ts";
import type { Tile } from "../state/tiles.ts";
import { Icon } from "./icons.tsx";
import { Media } from "./media.tsx";
import { CallCost } from "./small.tsx";

export function TileCard({ tile, open }: { tile: Tile; open: (key: string) => void }) {
  switch (tile.state) {
    case "pending":
      return (
        <li class="tile tile-pending">
          <div class="tile-frame">
            <div class="shimmer" aria-hidden="true" />
            <p class="tile-wish">{tile.prompt ?? tile.call?.model ?? ""}</p>
          </div>
          <p class="tile-caption">
            <span class="tone-live tile-state">
              <span class="pulse" aria-hidden="true" /> making
            </span>
            <span class="muted">{tile.call?.model}</span>
          </p>
        </li>
      );
    case "failed":
    case "cancelled":
      return (
        <li class={`tile tile-${tile.state}`}>
          <div class="tile-frame">
            <div class="tile-fault">
              <Icon name={tile.state === "failed" ? "alert" : "stop"} />
              <strong>{tile.state === "failed" ? "Failed" : "Cancelled"}</strong>
              {tile.error !== null && <span>{tile.error}</span>}
            </div>
          </div>
          <p class="tile-caption">
            <span class="tile-prompt" title={tile.prompt ?? undefined}>
              {tile.prompt ?? tile.call?.model}
            </span>
            {tile.call !== null && hasClosed(tile.call.status) && (
              <CallCost cost={tile.call.cost} currency={tile.call.currency} status={tile.call.status} />
            )}
          </p>
        </li>
      );
    case "ready":
      return <ReadyTile tile={tile} open={open} />;
    default:
      return unreachable(tile.state);
  }
}

/** A call that the frames still show at work says nothing about its cost once the run has ended. */
function hasClosed(status: string): boolean {
  return status !== "running" && status !== "pending" && status !== "booting";
}

function unreachable(state: never): null {
  void state;
  return null;
}

function ReadyTile({ tile, open }: { tile: Tile; open: (key: string) => void }) {
  if (tile.leaf === null) return null;
  const label = labelOf(tile);
  const caption = (
    <p class="tile-caption">
      <span class="tile-index">{tile.index === null ? "" : `#${tile.index}`}</span>
      <span class="tile-prompt" title={tile.prompt ?? undefined}>
        {tile.prompt ?? (tile.leaf.at.handle === "output" ? "" : tile.leaf.at.handle)}
      </span>
      {tile.call?.cost != null && <span class="amount">{price(tile.call.cost, tile.call.currency)}</span>}
    </p>
  );
  const wide = tile.leaf.kind === "text" || tile.leaf.kind === "document" || tile.leaf.kind === "json";
  // A player is itself a control, so only the frame of silent things is a button.
  if (tile.leaf.kind === "audio") {
    return (
      <li class="tile tile-audio">
        <div class="tile-frame">
          <Media leaf={tile.leaf} small label={label} />
          <button type="button" class="tile-more" onClick={() => open(tile.key)}>
            Details<span class="sr"> of {label}</span>
          </button>
        </div>
        {caption}
      </li>
    );
  }
  return (
    <li class={`tile tile-${tile.leaf.kind} ${wide ? "tile-words" : ""}`}>
      <button type="button" class="tile-frame" data-tile={tile.key} onClick={() => open(tile.key)} aria-label={`Open ${label}`}>
        <Media leaf={tile.leaf} small label="" />
      </button>
      {caption}
    </li>
  );
}

/** What a tile is called, for those who do not see it. */
export function labelOf(tile: Tile): string {
  const which = tile.index === null ? "" : ` ${tile.index}`;
  return `${tile.leaf?.kind ?? "value"}${which} of ${tile.nodeName}${tile.prompt === null ? "" : `: ${tile.prompt.slice(0, 120)}`}`;
}
