/** One artifact, large, with its story; the arrow keys lead to its neighbours. */

import { useEffect, useRef } from "preact/hooks";
import { duration, words } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { href } from "../state/route.ts";
import type { Tile } from "../state/tiles.ts";
import { Icon } from "./icons.tsx";
import { Media } from "./media.tsx";
import { CallCost, Copy, Fact, Id } from "./small.tsx";
import { labelOf } from "./tile.tsx";

interface Props {
  tiles: readonly Tile[];
  /** The key of the tile that is open. */
  at: string;
  show: (key: string | undefined) => void;
}

export function Lightbox({ tiles, at, show }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const here = tiles.findIndex((one) => one.key === at);
  const tile = tiles[here];
  const before = tiles[here - 1]?.key;
  const after = tiles[here + 1]?.key;

  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);

  if (tile === undefined || tile.leaf === null) return null;
  return (
    <dialog
      ref={dialog}
      class="box"
      aria-label={labelOf(tile)}
      onClose={() => show(undefined)}
      onClick={(event) => {
        if (event.target === event.currentTarget) show(undefined);
      }}
      onKeyDown={(event) => {
        // The arrows inside a player belong to the player.
        if (event.target instanceof HTMLMediaElement) return;
        if (event.key === "ArrowLeft" && before !== undefined) show(before);
        if (event.key === "ArrowRight" && after !== undefined) show(after);
      }}
    >
      <div class="box-in" tabIndex={-1} autoFocus>
        <div class={`box-stage box-${tile.leaf.kind}`}>
          <Media key={tile.key} leaf={tile.leaf} small={false} label={tile.prompt ?? labelOf(tile)} />
          <button type="button" class="box-step box-before" disabled={before === undefined} onClick={() => show(before)} aria-label="Previous">
            <Icon name="left" />
          </button>
          <button type="button" class="box-step box-after" disabled={after === undefined} onClick={() => show(after)} aria-label="Next">
            <Icon name="right" />
          </button>
        </div>
        <div class="box-side">
          <header class="box-head">
            <div>
              <h2>{tile.nodeName}</h2>
              <p class="muted">
                {here + 1} of {tiles.length}
              </p>
            </div>
            <button type="button" class="icon-button box-close" onClick={() => show(undefined)} aria-label="Close">
              <Icon name="cross" />
            </button>
          </header>
          {tile.prompt !== null && (
            <div class="box-prompt">
              <h3 class="small-head">
                Prompt <Copy text={tile.prompt} label="Copy the prompt" />
              </h3>
              <p>{tile.prompt}</p>
            </div>
          )}
          <Story tile={tile} />
          <div class="box-acts">
            {tile.assetId !== null && (
              <a class="button button-main" href={api.assetUrl(tile.assetId, { download: true })} download>
                <Icon name="download" /> Download
              </a>
            )}
            {tile.call !== null && (
              <a class="button" href={href(["ledger", tile.call.id])}>
                <Icon name="ledger" /> In the ledger
              </a>
            )}
          </div>
        </div>
      </div>
    </dialog>
  );
}

function Story({ tile }: { tile: Tile }) {
  const { call, leaf } = tile;
  return (
    <dl class="facts">
      {tile.index !== null && <Fact term="Variant">#{tile.index}</Fact>}
      {leaf !== null && leaf.at.handle !== "output" && <Fact term="Output">{leaf.at.handle}</Fact>}
      {leaf?.at.element != null && <Fact term="Element">{leaf.at.element}</Fact>}
      {tile.seed !== null && <Fact term="Seed">{tile.seed}</Fact>}
      {call !== null && (
        <>
          <Fact term="Cost">
            <CallCost cost={call.cost} currency={call.currency} status={call.status} />
          </Fact>
          <Fact term="Model">
            {call.provider} / {call.model}
          </Fact>
          <Fact term="Kind">{words(call.capability)}</Fact>
          {call.durationMs !== null && <Fact term="Took">{duration(call.durationMs)}</Fact>}
          <Fact term="Generation">
            <Id id={call.id} />
          </Fact>
        </>
      )}
      {tile.assetId !== null && (
        <Fact term="Asset">
          <Id id={tile.assetId} />
        </Fact>
      )}
    </dl>
  );
}
