/** Everything that was made and kept. */

import type { Asset } from "@atelier/client";
import { useState } from "preact/hooks";
import { Icon } from "../components/icons.tsx";
import { Media } from "../components/media.tsx";
import { Empty, Failure, TileSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Ago, Command, More } from "../components/small.tsx";
import { size } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { href, route, setQuery } from "../state/route.ts";
import { leafOfAsset, promptOf } from "../state/tiles.ts";

const PAGE = 60;
const MOST = 500;
const KINDS: readonly { kind: string; label: string }[] = [
  { kind: "", label: "All" },
  { kind: "image", label: "Images" },
  { kind: "audio", label: "Audio" },
  { kind: "video", label: "Video" },
  { kind: "text", label: "Text" },
];

export function AssetsPage() {
  useTitle("Assets");
  const kind = route.value.query.get("type") ?? "";
  const [limit, setLimit] = useState(PAGE);
  const assets = usePoll(`assets ${kind} ${limit}`, (signal) => api.assets({ content_type: kind, limit }, signal));
  const { data, error } = assets;
  return (
    <>
      <header class="head">
        <h1>Assets</h1>
        <div class="segments" role="group" aria-label="Kind of asset">
          {KINDS.map((one) => (
            <button key={one.kind} type="button" aria-pressed={kind === one.kind} onClick={() => setQuery({ type: one.kind })}>
              {one.label}
            </button>
          ))}
        </div>
      </header>
      {error !== undefined && <Failure error={error} retry={assets.reload} strip={data !== undefined} />}
      {data === undefined && error === undefined && <TileSkeleton />}
      {data !== undefined && data.items.length === 0 && (
        <Empty title={kind === "" ? "Nothing has been made yet" : "None of this kind"}>
          {kind === "" ? <Command text="atelier run examples/six-images.json" /> : <p>Choose another kind above.</p>}
        </Empty>
      )}
      {data !== undefined && data.items.length > 0 && (
        <>
          <ul class={`tiles tiles-assets ${assets.stale ? "stale" : ""}`}>
            {data.items.map((asset) => (
              <AssetCard key={asset.id} asset={asset} />
            ))}
          </ul>
          <More shown={data.items.length} more={data.next !== null && limit < MOST} load={() => setLimit(limit + PAGE)} />
        </>
      )}
    </>
  );
}

function AssetCard({ asset }: { asset: Asset }) {
  const leaf = leafOfAsset(asset, (id) => api.assetUrl(id));
  const prompt = promptOf(asset.metadata);
  const generation = asset.generation_ids[0];
  return (
    <li class={`tile tile-${leaf.kind} tile-asset`}>
      <div class="tile-frame">
        {leaf.kind === "audio" || leaf.kind === "video" ? (
          <Media leaf={leaf} small={false} label={asset.name} />
        ) : (
          <a class="tile-open" href={api.assetUrl(asset.id)} target="_blank" rel="noreferrer" aria-label={`Open ${asset.name}`}>
            <Media leaf={leaf} small label="" />
          </a>
        )}
      </div>
      <div class="asset-text">
        <span class="asset-name" title={prompt ?? asset.name}>
          {prompt ?? asset.name}
        </span>
        <span class="asset-sub">
          {asset.content_type.split("/")[1] ?? asset.content_type} · {size(asset.size_bytes)} · <Ago at={asset.created_at} />
        </span>
        <span class="asset-acts">
          {asset.job_id !== null && (
            <a href={href(["runs", asset.job_id])}>
              <Icon name="runs" /> Run
            </a>
          )}
          {generation !== undefined && (
            <a href={href(["ledger", generation])}>
              <Icon name="ledger" /> Ledger
            </a>
          )}
          <a class="asset-download" href={api.assetUrl(asset.id, { download: true })} download aria-label={`Download ${asset.name}`}>
            <Icon name="download" />
          </a>
        </span>
      </div>
    </li>
  );
}
