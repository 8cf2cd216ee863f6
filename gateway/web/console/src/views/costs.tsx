/** What the calls have cost, as a whole and by provider, model, kind and day. */

import { type CostGroup, type CostGrouping, money } from "@atelier/client";
import { Empty, Failure, RowSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Command } from "../components/small.tsx";
import { Sums, Totals } from "../components/totals.tsx";
import { count, price, words } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { href, route, setQuery } from "../state/route.ts";

const SPANS: readonly { days: string; label: string }[] = [
  { days: "1", label: "24 hours" },
  { days: "7", label: "7 days" },
  { days: "30", label: "30 days" },
  { days: "", label: "all time" },
];
const DAY_MS = 86_400_000;

export function CostsPage() {
  useTitle("Costs");
  const days = route.value.query.get("days") ?? "";
  const costs = usePoll(`spent ${days}`, (signal) => readAll(days, signal), 5_000);
  const { data, error } = costs;
  return (
    <>
      <header class="head">
        <h1>Costs</h1>
        <div class="segments" role="group" aria-label="Span of time">
          {SPANS.map((span) => (
            <button key={span.days} type="button" aria-pressed={days === span.days} onClick={() => setQuery({ days: span.days })}>
              {span.label}
            </button>
          ))}
        </div>
      </header>
      {error !== undefined && <Failure error={error} retry={costs.reload} strip={data !== undefined} />}
      {data === undefined && error === undefined && <RowSkeleton />}
      {data !== undefined && data.total.call_count === 0 && (
        <Empty title={days === "" ? "Nothing has been spent" : "Nothing was spent in this time"}>
          {days === "" ? <Command text="atelier run examples/six-images.json" /> : <p>Choose a longer span above.</p>}
        </Empty>
      )}
      {data !== undefined && data.total.call_count > 0 && (
        <div class={costs.stale ? "stale" : ""}>
          <Totals total={data.total} />
          <Days groups={data.day} least={days === "" ? LEAST_DAYS : Number(days)} />
          <div class="cost-columns">
            <Bars title="By provider" groups={data.provider} link={(key) => href(["ledger"], { provider: key })} />
            <Bars title="By model" groups={data.model} link={(key) => href(["ledger"], { model: key })} />
            <Bars title="By kind" groups={data.capability} />
          </div>
        </div>
      )}
    </>
  );
}

interface Spent {
  total: CostGroup;
  day: CostGroup[];
  provider: CostGroup[];
  model: CostGroup[];
  capability: CostGroup[];
}

async function readAll(days: string, signal: AbortSignal): Promise<Spent> {
  const since = days === "" ? undefined : new Date(Date.now() - Number(days) * DAY_MS).toISOString();
  const by = (group: CostGrouping) => api.costs(group, { since }, signal);
  const [day, provider, model, capability] = await Promise.all([by("day"), by("provider"), by("model"), by("capability")]);
  return { total: day.total, day: day.groups, provider: provider.groups, model: model.groups, capability: capability.groups };
}

function spent(group: CostGroup): number {
  return Math.max(0, money.approximate(group.amount));
}

/** The length of a bar; what is not nothing stays visible. */
function share(part: number, most: number): string {
  return part === 0 || most === 0 ? "0" : `${Math.max(0.8, (100 * part) / most)}%`;
}

function Bars({ title, groups, link }: { title: string; groups: readonly CostGroup[]; link?: (key: string) => string }) {
  const sorted = [...groups].sort((a, b) => spent(b) - spent(a) || b.call_count - a.call_count);
  const most = Math.max(...sorted.map(spent), 0);
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <ul class="bars">
        {sorted.map((group) => {
          const name = words(group.key) || "none";
          return (
            <li key={group.key} class="bar-row">
              <div class="bar-line">
                {link === undefined || group.key === "" ? <span>{name}</span> : <a href={link(group.key)}>{group.key}</a>}
                <Sums group={group} />
              </div>
              <div class="bar-track" aria-hidden="true">
                <div class="bar-fill" style={{ width: share(spent(group), most) }} />
              </div>
              <div class="bar-sub">
                {count(group.call_count, "call")}
                {group.failed_count > 0 && `, ${group.failed_count} failed`}
                {group.unpriced_count > 0 && `, ${group.unpriced_count} unpriced`}
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** A column per day, days without a call included, so that the distance between two columns is time. */
function Days({ groups, least }: { groups: readonly CostGroup[]; least: number }) {
  const days = filled(groups, least);
  const most = Math.max(...days.map((one) => (one.group === undefined ? 0 : spent(one.group))), 0);
  if (days.length < 2) return null;
  return (
    <section class="panel" aria-label="By day">
      <h2>By day</h2>
      <ol class="days">
        {days.map(({ day, group }) => (
          <li key={day} class="day" title={`${day}: ${group?.amount == null ? "–" : price(group.amount, group.currency)}`}>
            <span class="sr">
              {day}: {group?.amount == null ? "nothing known" : price(group.amount, group.currency)}
            </span>
            <div class="day-track" aria-hidden="true">
              <div class="day-fill" style={{ height: share(group === undefined ? 0 : spent(group), most) }} />
            </div>
            <span class="day-name" aria-hidden="true">
              {day.slice(8)}
            </span>
          </li>
        ))}
      </ol>
      <p class="days-span muted">
        {days[0]?.day} to {days.at(-1)?.day}
        <span>highest {price(String(most), groups[0]?.currency ?? null)}</span>
      </p>
    </section>
  );
}

const LEAST_DAYS = 14;
const MOST_DAYS = 60;

function filled(groups: readonly CostGroup[], least: number): { day: string; group: CostGroup | undefined }[] {
  const known = new Map(groups.map((one) => [one.key.slice(0, 10), one]));
  const sorted = [...known.keys()].filter((one) => !Number.isNaN(Date.parse(one))).sort();
  const first = sorted[0];
  const last = sorted.at(-1);
  if (first === undefined || last === undefined) return [];
  const days = [];
  const from = Math.min(Date.parse(first), Date.parse(last) - (least - 1) * DAY_MS);
  for (let at = from; at <= Date.parse(last); at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    days.push({ day, group: known.get(day) });
  }
  return days.slice(-MOST_DAYS);
}
