/** The whole story of one row of the ledger. */

import type { Attempt, Generation } from "@atelier/client";
import { duration, moment, price, tookOf, words } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import { href } from "../state/route.ts";
import { promptOf } from "../state/tiles.ts";
import { Icon } from "./icons.tsx";
import { CallCost, Fact, Id } from "./small.tsx";

export function GenerationStory({ row }: { row: Generation }) {
  const prompt = promptOf(row.params);
  return (
    <div class="story">
      {row.error !== null && (
        <div class="fault">
          <Icon name="alert" />
          <div>
            <strong>{row.error}</strong>
            {row.error_code !== null && <code>{row.error_code}</code>}
          </div>
        </div>
      )}
      {row.asset_ids.length > 0 && <Made row={row} />}
      {prompt !== null && <blockquote class="story-prompt">{prompt}</blockquote>}
      <div class="story-parts">
        <Money row={row} />
        <Course row={row} />
        <Where row={row} />
      </div>
      {row.attempts.length > 0 && <Attempts attempts={row.attempts} />}
      <details class="raw">
        <summary>Parameters</summary>
        <pre class="json">{JSON.stringify(row.params, null, 2)}</pre>
      </details>
      {Object.keys(row.metadata).length > 0 && (
        <details class="raw">
          <summary>Metadata</summary>
          <pre class="json">{JSON.stringify(row.metadata, null, 2)}</pre>
        </details>
      )}
    </div>
  );
}

function Made({ row }: { row: Generation }) {
  const picture = row.capability.endsWith("image");
  const sound = /speech|audio|music/.test(row.capability) && !row.capability.startsWith("speech_to");
  return (
    <ul class="story-assets">
      {row.asset_ids.map((id) => (
        <li key={id}>
          {sound ? (
            <audio controls preload="none" src={api.assetUrl(id)} aria-label={`Asset ${id}`} />
          ) : (
            <a href={api.assetUrl(id)} target="_blank" rel="noreferrer" aria-label={`Open asset ${id}`}>
              {picture ? <img src={api.assetUrl(id)} alt="" loading="lazy" decoding="async" /> : <Icon name="file" />}
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}

function Money({ row }: { row: Generation }) {
  const { reconcile } = row;
  const dash = <span class="muted">–</span>;
  return (
    <section>
      <h2 class="small-head">Money</h2>
      <dl class="facts">
        <Fact term="Cost">
          <CallCost cost={row.cost} currency={row.currency} status={row.status} />
        </Fact>
        <Fact term="Estimate">{row.estimated_cost === null ? dash : price(row.estimated_cost, row.currency)}</Fact>
        {row.quantity !== null && (
          <Fact term="Quantity">
            {row.quantity} {unitOf(row)}
            {row.unit_price !== null && ` × ${price(row.unit_price, row.currency)}`}
          </Fact>
        )}
        <Fact term="Price from">{row.price_source === null ? dash : words(row.price_source)}</Fact>
        {(row.input_tokens !== null || row.output_tokens !== null) && (
          <Fact term="Tokens">
            {row.input_tokens ?? 0} in, {row.output_tokens ?? 0} out
          </Fact>
        )}
        <Fact term="Reconcile">
          {words(reconcile.state)}
          {reconcile.attempts > 0 && <span class="muted"> after {reconcile.attempts}</span>}
          {reconcile.error !== null && <span class="muted">, {reconcile.error}</span>}
          {reconcile.next_at !== null && <span class="muted">, next {moment(reconcile.next_at)}</span>}
          {reconcile.reconciled_at !== null && <span class="muted">, {moment(reconcile.reconciled_at)}</span>}
        </Fact>
      </dl>
    </section>
  );
}

function unitOf(row: Generation): string {
  const unit = words(row.billing_unit ?? "");
  return row.quantity === "1" ? unit.replace(/s$/, "") : unit;
}

function Course({ row }: { row: Generation }) {
  const took = tookOf(row);
  return (
    <section>
      <h2 class="small-head">Course</h2>
      <dl class="facts">
        <Fact term="Opened">{moment(row.created_at)}</Fact>
        {row.started_at !== null && <Fact term="Sent">{moment(row.started_at)}</Fact>}
        {row.completed_at !== null && (
          <Fact term="Ended">
            {moment(row.completed_at)}
            {took !== null && <span class="muted">, {duration(took)}</span>}
          </Fact>
        )}
        {row.facets.submission !== null && <Fact term="Submission">{words(row.facets.submission)}</Fact>}
        {row.facets.provider !== null && <Fact term="Provider says">{words(row.facets.provider)}</Fact>}
        {row.facets.output !== null && <Fact term="Output">{words(row.facets.output)}</Fact>}
      </dl>
    </section>
  );
}

function Where({ row }: { row: Generation }) {
  return (
    <section>
      <h2 class="small-head">Who and where</h2>
      <dl class="facts">
        <Fact term="Provider">
          <a href={href(["ledger"], { provider: row.provider })}>{row.provider}</a>
        </Fact>
        <Fact term="Receipt">{row.provider_request_id === null ? <span class="muted">–</span> : <Id id={row.provider_request_id} whole />}</Fact>
        <Fact term="Row">
          <Id id={row.id} />
        </Fact>
        {row.job_id !== null && (
          <Fact term="Run">
            <a href={href(["runs", row.job_id])}>open the run</a>
          </Fact>
        )}
        {row.node_id !== null && <Fact term="Node">{row.node_id}</Fact>}
        <Fact term="Asked by">{row.origin.surface ?? "–"}</Fact>
      </dl>
    </section>
  );
}

function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  return (
    <section>
      <h2 class="small-head">Attempts</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Attempts">
        <table class="mini">
          <thead>
            <tr>
              <th scope="col">#</th>
              <th scope="col">Kind</th>
              <th scope="col">Request id</th>
              <th scope="col">Submission</th>
              <th scope="col">Provider</th>
              <th scope="col" class="right">
                Cost
              </th>
            </tr>
          </thead>
          <tbody>
            {attempts.map((one) => (
              <tr key={one.no}>
                <td>{one.no}</td>
                <td>{words(one.kind)}</td>
                <td>
                  <code>{one.request_id ?? "–"}</code>
                </td>
                <td>{words(one.submission_status ?? "–")}</td>
                <td>{words(one.provider_status ?? "–")}</td>
                <td class="right">{one.cost === null ? <span class="muted">–</span> : price(one.cost, one.currency)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
