/** One row of the ledger on a page of its own. */

import { GenerationStory } from "../components/generation.tsx";
import { Empty, Failure, RowSkeleton } from "../components/notice.tsx";
import { useTitle } from "../components/shell.tsx";
import { Ago, CallCost, Confirm, Fact, Id, Status, Took } from "../components/small.tsx";
import { tookOf, words } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { usePoll } from "../state/poll.ts";
import { href } from "../state/route.ts";

export function GenerationPage({ id }: { id: string }) {
  const row = usePoll(`generation ${id}`, (signal) => api.generation(id, signal));
  useTitle(row.data === undefined ? "Generation" : `${row.data.model} · Ledger`);
  if (row.data === undefined) {
    if (row.error?.code === "not_found") {
      return (
        <Empty title="There is no such generation">
          <a class="button" href={href(["ledger"])}>
            The ledger
          </a>
        </Empty>
      );
    }
    return row.error === undefined ? <RowSkeleton rows={5} /> : <Failure error={row.error} retry={row.reload} />;
  }
  const { data } = row;
  return (
    <>
      <header class="head run-head">
        <nav class="crumbs" aria-label="Where this is">
          <a href={href(["ledger"])}>Ledger</a>
          <span aria-hidden="true">/</span>
          <Id id={data.id} />
        </nav>
        <div class="run-title">
          <h1>{data.model}</h1>
          <Status status={data.status} />
          {data.status === "running" && (
            <Confirm label="Cancel" sure="Really cancel?" act={() => api.cancelGeneration(id).then(row.reload)} />
          )}
        </div>
        <dl class="figures">
          <Fact term="Cost">
            <CallCost cost={data.cost} currency={data.currency} status={data.status} />
          </Fact>
          <Fact term="Duration">
            <Took ms={tookOf(data)} since={data.started_at} running={data.status === "running"} />
          </Fact>
          <Fact term="Kind">{words(data.capability)}</Fact>
          <Fact term="Started">
            <Ago at={data.started_at ?? data.created_at} />
          </Fact>
        </dl>
      </header>
      {row.error !== undefined && <Failure error={row.error} retry={row.reload} strip />}
      <div class="panel">
        <GenerationStory row={data} />
      </div>
    </>
  );
}
