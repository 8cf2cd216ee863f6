/** The ledger: every call to a provider, and what became of it. */

import type { CostGroup, Generation } from "@atelier/client";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { GenerationStory } from "../components/generation.tsx";
import { Icon } from "../components/icons.tsx";
import { Empty, Failure, RowSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Ago, CallCost, Command, More, Status, Took } from "../components/small.tsx";
import { Totals } from "../components/totals.tsx";
import { shortId, tookOf, words } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { href, route, setQuery } from "../state/route.ts";

const PAGE = 50;
const MOST = 500;
const STATUSES = ["running", "completed", "failed", "cancelled", "interrupted"];

export function LedgerPage() {
  useTitle("Ledger");
  const query = route.value.query;
  const filter = {
    status: query.get("status") ?? "",
    provider: query.get("provider") ?? "",
    model: query.get("model") ?? "",
    job_id: query.get("job_id") ?? "",
  };
  const filtered = Object.values(filter).some((one) => one !== "");
  const [limit, setLimit] = useState(PAGE);
  const key = JSON.stringify(filter);
  const rows = usePoll(`generations ${key} ${limit}`, (signal) => api.generations({ ...filter, limit }, signal));
  const costs = usePoll(`costs ${key}`, (signal) => api.costs(undefined, filter, signal));
  const providers = usePoll("providers", (signal) => api.costs("provider", {}, signal), 15_000);

  return (
    <>
      <header class="head">
        <h1>Ledger</h1>
        <div class="filters">
          <Choice label="Status" all="every status" value={filter.status} options={STATUSES} pick={(status) => setQuery({ status })} />
          <Choice
            label="Provider"
            all="every provider"
            value={filter.provider}
            options={names(providers.data?.groups ?? [], filter.provider)}
            pick={(provider) => setQuery({ provider })}
          />
          {filter.model !== "" && <Chip text={filter.model} drop={() => setQuery({ model: undefined })} />}
          {filter.job_id !== "" && <Chip text={`run ${shortId(filter.job_id)}`} drop={() => setQuery({ job_id: undefined })} />}
        </div>
      </header>
      {costs.data !== undefined && costs.data.total.call_count > 0 && <Totals total={costs.data.total} />}
      {rows.error !== undefined && <Failure error={rows.error} retry={rows.reload} strip={rows.data !== undefined} />}
      {rows.data === undefined && rows.error === undefined && <RowSkeleton rows={9} />}
      {rows.data !== undefined && rows.data.items.length === 0 && <NoRows filtered={filtered} />}
      {rows.data !== undefined && rows.data.items.length > 0 && (
        <>
          <Rows rows={rows.data.items} stale={rows.stale} />
          <More shown={rows.data.items.length} more={rows.data.next !== null && limit < MOST} load={() => setLimit(limit + PAGE)} />
        </>
      )}
    </>
  );
}

function names(groups: readonly CostGroup[], chosen: string): string[] {
  return [...new Set([...groups.map((one) => one.key), chosen])].filter((one) => one !== "").sort();
}

function NoRows({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="Nothing fits these filters">
        <a class="button" href={href(["ledger"])}>
          Show every row
        </a>
      </Empty>
    );
  }
  return (
    <Empty title="No provider has been called yet">
      <p>Every call gets a row before it is sent, and keeps it whatever becomes of it.</p>
      <Command text="atelier run examples/six-images.json" />
    </Empty>
  );
}

interface ChoiceProps {
  label: string;
  all: string;
  value: string;
  options: readonly string[];
  pick: (value: string) => void;
}

function Choice({ label, all, value, options, pick }: ChoiceProps) {
  return (
    <select class="select" aria-label={label} value={value} onChange={(event) => pick(event.currentTarget.value)}>
      <option value="">{all}</option>
      {options.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

function Chip({ text, drop }: { text: string; drop: () => void }) {
  return (
    <button type="button" class="chip" onClick={drop} aria-label={`Remove the filter ${text}`}>
      {text} <Icon name="cross" />
    </button>
  );
}

function Rows({ rows, stale }: { rows: readonly Generation[]; stale: boolean }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (id: string): void => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return (
    <table class={`table ${stale ? "stale" : ""}`}>
      <thead>
        <tr>
          <th scope="col">
            <span class="sr">Whole story</span>
          </th>
          <th scope="col">Status</th>
          <th scope="col">Model</th>
          <th scope="col">Kind</th>
          <th scope="col" class="right">
            Cost
          </th>
          <th scope="col" class="right">
            Duration
          </th>
          <th scope="col">Started</th>
          <th scope="col">Run</th>
          <th scope="col">Assets</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Fragment key={row.id}>
            <Row row={row} open={open.has(row.id)} toggle={() => toggle(row.id)} />
            {open.has(row.id) && (
              <tr class="row-story">
                <td colSpan={9}>
                  <GenerationStory row={row} />
                </td>
              </tr>
            )}
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

function Row({ row, open, toggle }: { row: Generation; open: boolean; toggle: () => void }) {
  return (
    <tr
      class={`row ${open ? "row-open" : ""}`}
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest("a, button") === null) toggle();
      }}
    >
      <td class="cell-toggle">
        <button type="button" class="icon-button" aria-expanded={open} aria-label={`The whole story of ${row.id}`} onClick={toggle}>
          <Icon name="right" class="turn" />
        </button>
      </td>
      <td class="cell-status">
        <Status status={row.status} />
      </td>
      <td class="cell-model">
        <span class="model">{row.model}</span>
        <span class="provider">{row.provider}</span>
        {row.error !== null && <span class="row-error">{row.error}</span>}
      </td>
      <td data-label="Kind">{words(row.capability)}</td>
      <td data-label="Cost" class="right">
        <CallCost cost={row.cost} currency={row.currency} status={row.status} />
      </td>
      <td data-label="Duration" class="right">
        <Took ms={tookOf(row)} since={row.started_at} running={row.status === "running"} />
      </td>
      <td data-label="Started">
        <Ago at={row.started_at ?? row.created_at} />
      </td>
      <td data-label="Run">
        {row.job_id === null ? (
          <span class="muted">{row.origin.surface ?? "–"}</span>
        ) : (
          <a href={href(["runs", row.job_id])} title={row.job_id}>
            {row.node_id ?? shortId(row.job_id)}
          </a>
        )}
      </td>
      <td data-label="Assets">
        {row.asset_ids.length === 0 ? (
          <span class="muted">–</span>
        ) : (
          <a href={row.job_id === null ? href(["assets"]) : href(["runs", row.job_id])}>{row.asset_ids.length}</a>
        )}
      </td>
    </tr>
  );
}
