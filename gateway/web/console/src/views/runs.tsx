/** All runs, newest first. */

import type { Asset, Job, Page } from "@atelier/client";
import { useMemo, useState } from "preact/hooks";
import { Icon } from "../components/icons.tsx";
import { Empty, Failure, RowSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Ago, Command, Confirm, More, RunCost, Status, Took } from "../components/small.tsx";
import { count } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { href, route, setQuery } from "../state/route.ts";

const PAGE = 50;
const MOST = 500;
const STATUSES = ["running", "queued", "completed", "failed", "cancelled", "suspended"];
const THUMBS = 4;

export function RunsPage() {
  useTitle("Runs");
  const status = route.value.query.get("status") ?? "";
  const [limit, setLimit] = useState(PAGE);
  const runs = usePoll(`jobs ${status} ${limit}`, (signal) => api.jobs({ status, limit }, signal));
  const pictures = usePoll("pictures", (signal) => api.assets({ content_type: "image", limit: 200 }, signal), 4_000);
  const thumbs = useMemo(() => byJob(pictures.data?.items ?? []), [pictures.data]);
  const known = useMemo(() => knownSince(pictures.data), [pictures.data]);

  return (
    <>
      <header class="head">
        <h1>Runs</h1>
        <select class="select" aria-label="Status" value={status} onChange={(event) => setQuery({ status: event.currentTarget.value })}>
          <option value="">every status</option>
          {STATUSES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </header>
      {runs.error !== undefined && <Failure error={runs.error} retry={runs.reload} strip={runs.data !== undefined} />}
      {runs.data === undefined && runs.error === undefined && <RowSkeleton />}
      {runs.data !== undefined && runs.data.items.length === 0 && <NoRuns filtered={status !== ""} />}
      {runs.data !== undefined && runs.data.items.length > 0 && (
        <>
          <ol class={`runs ${runs.stale ? "stale" : ""}`}>
            {runs.data.items.map((job) => (
              <RunRow key={job.id} job={job} thumbs={thumbs.get(job.id) ?? []} counted={job.created_at >= known} reload={runs.reload} />
            ))}
          </ol>
          <More shown={runs.data.items.length} more={runs.data.next !== null && limit < MOST} load={() => setLimit(limit + PAGE)} />
        </>
      )}
    </>
  );
}

function byJob(assets: readonly Asset[]): Map<string, Asset[]> {
  const lists = new Map<string, Asset[]>();
  for (const asset of assets) {
    if (asset.job_id === null) continue;
    const list = lists.get(asset.job_id) ?? [];
    list.push(asset);
    lists.set(asset.job_id, list);
  }
  for (const list of lists.values()) list.sort((a, b) => (a.index ?? 0) - (b.index ?? 0));
  return lists;
}

/** The moment since which every picture is on the page that was read: of older runs some may be missing. */
function knownSince(page: Page<Asset> | undefined): string {
  if (page === undefined || page.next === null) return "";
  return page.items.reduce((oldest, one) => (one.created_at < oldest ? one.created_at : oldest), page.items[0]?.created_at ?? "");
}

function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No run has this status">
        <button type="button" class="button" onClick={() => setQuery({ status: undefined })}>
          Show every run
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing has run yet">
      <p>Start a run in a terminal. It appears here at once, and its pictures as they are made.</p>
      <Command text="atelier run examples/six-images.json" />
    </Empty>
  );
}

interface RowProps {
  job: Job;
  thumbs: readonly Asset[];
  /** Whether `thumbs` are all the pictures of the run. */
  counted: boolean;
  reload: () => void;
}

function RunRow({ job, thumbs, counted, reload }: RowProps) {
  const active = job.status === "running" || job.status === "queued" || job.status === "suspended";
  return (
    <li class="run">
      <div class="run-name">
        <Status status={job.status} />
        <a class="run-link" href={href(["runs", job.id])}>
          {job.name || "Untitled run"}
        </a>
        {job.error !== null && <span class="run-error" title={job.error}>{job.error}</span>}
      </div>
      <div class="run-thumbs" aria-hidden="true">
        {thumbs.slice(0, THUMBS).map((asset) => (
          <img key={asset.id} src={api.assetUrl(asset.id)} alt="" loading="lazy" decoding="async" />
        ))}
        {thumbs.length > THUMBS && <span>+{counted ? thumbs.length - THUMBS : "…"}</span>}
      </div>
      <dl class="run-facts">
        <div class="run-started">
          <dt>Started</dt>
          <dd>
            <Ago at={job.started_at ?? job.created_at} />
          </dd>
        </div>
        <div class="run-took">
          <dt>Duration</dt>
          <dd>
            <Took ms={job.duration_ms} since={job.started_at} running={job.status === "running"} />
          </dd>
        </div>
        <div class="run-made">
          <dt>Results</dt>
          <dd title={count(job.artifact_count, "result")}>
            {job.artifact_count === 0 ? <span class="muted">none</span> : counted && thumbs.length > 0 ? count(thumbs.length, "image") : count(job.artifact_count, "result")}
          </dd>
        </div>
        <div class="run-spent">
          <dt>Cost</dt>
          <dd>
            <RunCost cost={job.cost} />
          </dd>
        </div>
      </dl>
      <div class="run-act">
        {active ? (
          <Confirm small label="Cancel" sure="Really?" act={() => api.cancelJob(job.id).then(reload)} />
        ) : (
          <Icon name="right" class="run-go" />
        )}
      </div>
    </li>
  );
}
