/** One run: live while it works, the same from its log and the ledger afterwards. */

import { type Job, type RunState, hasEnded } from "@atelier/client";
import { useMemo } from "preact/hooks";
import { Icon } from "../components/icons.tsx";
import { Lightbox } from "../components/lightbox.tsx";
import { Empty, Failure, TileSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Ago, Confirm, Fact, Id, RunCost, Status, Took } from "../components/small.tsx";
import { useRun } from "../state/follow.ts";
import { price } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { type Placed, placesOf } from "../state/places.ts";
import { href, route, setQuery } from "../state/route.ts";
import { type Group, type Tile, groupsOf } from "../state/tiles.ts";
import { GroupSection, Rest, sectionId } from "./run-groups.tsx";
import { RunSide } from "./run-side.tsx";

const MOST = 500;
const SLOWLY_MS = 10_000;

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
  const placed = placesOf(groups, state, graph);
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
          {placed.lead.map((group) => (
            <GroupSection key={group.node.id} group={group} state={state} open={view} />
          ))}
          <Nothing placed={placed} state={state} job={job.data} />
          <Rest groups={placed.rest} state={state} alone={settled && !placed.lead.some(showsSomething)} open={view} />
        </div>
        <RunSide groups={groups} state={state} job={job.data} />
      </div>
      {at !== null && <Large placed={placed} at={at} />}
    </>
  );
}

/** The open artifact among those it stands with: the arrows do not lead from the pictures into what is put away. */
function Large({ placed, at }: { placed: Placed; at: string }) {
  for (const list of [placed.lead, placed.rest]) {
    const tiles = list.flatMap((one) => one.tiles).filter(isReady);
    if (tiles.some((one) => one.key === at)) return <Lightbox tiles={tiles} at={at} show={view} />;
  }
  return null;
}

function isReady(tile: Tile): boolean {
  return tile.state === "ready" && tile.leaf !== null;
}

function showsSomething({ node, tiles }: Group): boolean {
  return tiles.length > 0 || node.error !== null;
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
        <Fact term="Results">{Math.max(job.artifact_count, committedIn(state))}</Fact>
        <Fact term="Started">
          <Ago at={job.started_at ?? job.created_at} />
        </Fact>
        {state.queuePosition !== null && <Fact term="Place in the queue">{state.queuePosition}</Fact>}
      </dl>
    </header>
  );
}

/** How many results the frames have told of: while the run works they are ahead of what is read again and again. */
function committedIn(state: RunState): number {
  let n = 0;
  for (const slots of state.variants.values()) for (const one of slots.values()) if (one.status === "completed") n += 1;
  return n;
}

/** Why the run failed, and the way to the node where it happened. */
function RunFault({ job, state, groups }: { job: Job; state: RunState; groups: readonly Group[] }) {
  const error = job.error ?? state.error;
  const issues = job.issues.length > 0 ? job.issues : state.issues;
  if (error === null && issues.length === 0) return null;
  const where = groups.find(({ node }) => node.error !== null && (error === node.error || error === `${node.id}: ${node.error}`));
  return (
    <section class="fault" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{where === undefined ? (error ?? "The graph has faults.") : `${where.title}: ${where.node.error}`}</strong>
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
      {where !== undefined && (
        <button type="button" class="button button-small" onClick={() => document.getElementById(sectionId(where))?.scrollIntoView({ behavior: "smooth" })}>
          Show where
        </button>
      )}
    </section>
  );
}

function Nothing({ placed, state, job }: { placed: Placed; state: RunState; job: Job }) {
  if (placed.lead.some((one) => showsSomething(one) || state.display.has(one.node.id))) return null;
  if (!hasEnded(job.status)) {
    return (
      <p class="quiet" role="status">
        <span class="pulse" aria-hidden="true" /> {job.status === "queued" ? "Waiting for its turn." : "At work. Results appear here as they are made."}
      </p>
    );
  }
  return placed.rest.some((one) => one.tiles.length > 0) ? null : <p class="quiet">This run made nothing.</p>;
}
