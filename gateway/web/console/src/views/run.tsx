/** One run: live while it works, the same from its log and the ledger afterwards. */

import { type Job, type RunState, hasEnded, streamedText } from "@atelier/client";
import { useMemo, useState } from "preact/hooks";
import { Icon } from "../components/icons.tsx";
import { Lightbox } from "../components/lightbox.tsx";
import { Media } from "../components/media.tsx";
import { Empty, Failure, TileSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Ago, Confirm, Fact, Id, More, RunCost, Status, Took } from "../components/small.tsx";
import { TileCard } from "../components/tile.tsx";
import { useRun } from "../state/follow.ts";
import { count, price, typeName } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { href, route, setQuery } from "../state/route.ts";
import { type Group, type Tile, groupsOf } from "../state/tiles.ts";
import { RunSide } from "./run-side.tsx";

const MOST = 500;
const SLOWLY_MS = 10_000;
/** So many tiles of a node are drawn at first, and with every step after that. */
const TILES = 120;

export function RunPage({ id }: { id: string }) {
  const { state, link } = useRun(id);
  const ended = hasEnded(state.status);
  // The end is known here before it is known there: read on until the gateway says it too, then slowly, for late charges.
  const job = usePoll(
    `job ${id} ${ended}`,
    (signal) => api.job(id, signal),
    (read) => (read !== undefined && hasEnded(read.status) ? SLOWLY_MS : 2_000),
  );
  const settled = ended || (job.data !== undefined && hasEnded(job.data.status));
  // While it works the frames tell of calls and artifacts; afterwards the ledger may know better.
  const calls = usePoll(`calls ${id} ${settled}`, (signal) => api.generations({ job_id: id, limit: MOST }, signal), settled ? SLOWLY_MS : null);
  const assets = usePoll(`assets ${id} ${settled}`, (signal) => api.assets({ job_id: id, limit: MOST }, signal), settled ? SLOWLY_MS : null);
  useTitle(job.data?.name || "Run");

  const graph = job.data?.graph;
  const groups = useMemo(
    () =>
      groupsOf(state, {
        graph,
        generations: calls.data?.items ?? [],
        assets: assets.data?.items ?? [],
        assetUrl: (asset) => api.assetUrl(asset),
      }),
    [state, graph, calls.data, assets.data],
  );

  if (job.data === undefined) {
    if (job.error?.code === "not_found") {
      return (
        <Empty title="There is no such run">
          <a class="button" href={href(["runs"])}>
            All runs
          </a>
        </Empty>
      );
    }
    if (job.error !== undefined) return <Failure error={job.error} retry={job.reload} />;
    return <TileSkeleton />;
  }
  const shown = groups.filter((one) => !one.sink);
  const ready = shown.flatMap((one) => one.tiles).filter((one) => one.state === "ready" && one.leaf !== null);
  const at = route.value.query.get("view");
  return (
    <>
      <RunHead job={job.data} state={state} reload={job.reload} />
      {job.error !== undefined && <Failure error={job.error} retry={job.reload} strip />}
      {link === "lost" && !settled && (
        <p class="strip" role="status">
          <span class="pulse" aria-hidden="true" /> The connection was lost. Trying again; nothing is missed.
        </p>
      )}
      {state.incomplete && (
        <p class="strip" role="status">
          The beginning of this run is no longer kept. Its artifacts and its costs are.
        </p>
      )}
      <RunFault job={job.data} state={state} groups={groups} />
      <div class="run-page">
        <div class="run-main">
          {shown.map((group) => (
            <GroupSection key={group.node.id} group={group} state={state} />
          ))}
          <Nothing shown={shown} state={state} job={job.data} />
        </div>
        <RunSide groups={groups} state={state} job={job.data} />
      </div>
      {at !== null && ready.some((one) => one.key === at) && <Lightbox tiles={ready} at={at} show={view} />}
    </>
  );
}

function view(key: string | undefined): void {
  setQuery({ view: key });
}

function RunHead({ job, state, reload }: { job: Job; state: RunState; reload: () => void }) {
  const status = state.status === "unknown" || hasEnded(job.status) ? job.status : state.status;
  const active = !hasEnded(status);
  const amounts = [...state.cost.amounts];
  const live = active && state.predictions.size > 0;
  return (
    <header class="head run-head">
      <nav class="crumbs" aria-label="Where this is">
        <a href={href(["runs"])}>Runs</a>
        <span aria-hidden="true">/</span>
        <Id id={job.id} />
      </nav>
      <div class="run-title">
        <h1>{job.name || "Untitled run"}</h1>
        <Status status={status} />
        {active && (
          <Confirm label="Cancel run" sure="Really cancel?" act={() => api.cancelJob(job.id).then(reload)} />
        )}
      </div>
      <dl class="figures">
        <Fact term="Cost">
          {live ? (
            <span class="run-cost">
              {amounts.map(([currency, amount]) => (
                <span key={currency} class="amount">
                  {price(amount, currency)}
                </span>
              ))}
              {state.cost.unpriced > 0 && <span class="unpriced">{state.cost.unpriced} unpriced</span>}
              {state.cost.running > 0 && <span class="muted">{amounts.length > 0 ? "+ " : ""}{state.cost.running} open</span>}
            </span>
          ) : (
            <RunCost cost={job.cost} />
          )}
        </Fact>
        <Fact term="Duration">
          <Took ms={job.duration_ms} since={job.started_at} running={status === "running"} />
        </Fact>
        <Fact term="Artifacts">{job.artifact_count}</Fact>
        <Fact term="Started">
          <Ago at={job.started_at ?? job.created_at} />
        </Fact>
        {state.queuePosition !== null && <Fact term="Place in the queue">{state.queuePosition}</Fact>}
      </dl>
    </header>
  );
}

/** Why the run failed, where it is not told by a node of its own. */
function RunFault({ job, state, groups }: { job: Job; state: RunState; groups: readonly Group[] }) {
  const error = job.error ?? state.error;
  const issues = job.issues.length > 0 ? job.issues : state.issues;
  const told = groups.some((one) => one.node.error !== null && one.node.error === error);
  if ((error === null || told) && issues.length === 0) return null;
  return (
    <section class="fault" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{error ?? "The graph has faults."}</strong>
        {(job.error_code ?? state.errorCode) !== null && <code>{job.error_code ?? state.errorCode}</code>}
        {issues.length > 0 && (
          <ul>
            {issues.map((issue, at) => (
              <li key={at}>
                <code>{[issue.node_id, issue.property].filter(Boolean).join(".")}</code> {issue.message}
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

function GroupSection({ group, state }: { group: Group; state: RunState }) {
  const { node, title } = group;
  const [most, setMost] = useState(TILES);
  const display = state.display.get(node.id);
  // What is being made is already to be seen: a grey tile beside it would say it twice.
  const tiles = display === undefined ? group.tiles : group.tiles.filter((one) => one.state !== "pending");
  if (tiles.length === 0 && display === undefined && node.error === null) return null;
  const ready = tiles.filter((one) => one.state === "ready").length;
  const progress = state.progress.get(node.id);
  return (
    <section class="group" aria-label={title}>
      <header class="group-head">
        <h2>{title}</h2>
        <Status status={node.status} compact />
        <span class="muted">{ready > 0 ? count(ready, "result") : typeName(node.type)}</span>
        {node.status === "running" && progress !== undefined && progress.total > 0 && (
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
            <TileCard key={tile.key} tile={tile} open={view} />
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

function Nothing({ shown, state, job }: { shown: readonly Group[]; state: RunState; job: Job }) {
  const any = shown.some((one) => one.tiles.length > 0 || one.node.error !== null || state.display.has(one.node.id));
  if (any) return null;
  if (!hasEnded(job.status)) {
    return (
      <p class="quiet" role="status">
        <span class="pulse" aria-hidden="true" /> {job.status === "queued" ? "Waiting for its turn." : "At work. Results appear here as they are made."}
      </p>
    );
  }
  return <p class="quiet">This run made nothing.</p>;
}
