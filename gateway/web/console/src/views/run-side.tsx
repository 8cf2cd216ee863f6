/** Beside a run's results: its nodes, its outputs by name, and its log. */

import { type Job, type LogLine, type RunState, leavesOf } from "@atelier/client";
import { useEffect, useRef } from "preact/hooks";
import { Media } from "../components/media.tsx";
import { Status } from "../components/small.tsx";
import { count, typeName } from "../state/format.ts";
import { api } from "../state/gateway.ts";
import type { Group } from "../state/tiles.ts";

const SHOWN_VALUES = 12;

export function RunSide({ groups, state, job }: { groups: readonly Group[]; state: RunState; job: Job }) {
  return (
    <div class="run-side">
      <section class="panel" aria-label="Nodes">
        <h2>Nodes</h2>
        {groups.length === 0 ? (
          <p class="muted">None yet.</p>
        ) : (
          <ul class="nodes">
            {groups.map((group) => (
              <NodeLine key={group.node.id} group={group} state={state} />
            ))}
          </ul>
        )}
      </section>
      <Outputs job={job} state={state} />
      <Log lines={state.log} groups={groups} />
    </div>
  );
}

function NodeLine({ group, state }: { group: Group; state: RunState }) {
  const { node, title } = group;
  const progress = state.progress.get(node.id);
  const made = state.variants.get(node.id)?.size ?? 0;
  return (
    <li class="node">
      <Status status={node.status} compact />
      <div class="node-text">
        <span class="node-name" title={node.type || undefined}>
          {title}
        </span>
        {!title.startsWith(typeName(node.type)) && (
          <span class="node-type" title={node.type}>
            {typeName(node.type)}
          </span>
        )}
        {node.status === "running" && progress !== undefined && progress.done < progress.total && (
          <progress value={progress.done} max={progress.total} aria-label={`Progress of ${title}`} />
        )}
      </div>
      {made > 1 && <span class="node-count">{made}</span>}
    </li>
  );
}

function Outputs({ job, state }: { job: Job; state: RunState }) {
  const outputs = job.outputs === null ? [...state.outputs] : Object.entries(job.outputs);
  if (outputs.length === 0) return null;
  return (
    <section class="panel" aria-label="Outputs">
      <h2>Outputs</h2>
      <dl class="outputs">
        {outputs.map(([name, values]) => {
          const leaves = values.flatMap((value) => leavesOf({ [name]: value }, (id) => api.assetUrl(id)));
          return (
            <div key={name} class="output">
              <dt>
                {name} <span class="muted">{count(values.length, "value")}</span>
              </dt>
              <dd class={leaves.every((one) => one.kind === "image") ? "output-pictures" : ""}>
                {leaves.slice(0, SHOWN_VALUES).map((leaf, at) => (
                  <div key={at} class={`output-value output-${leaf.kind}`}>
                    <Media leaf={leaf} small label={`${name} ${at}`} />
                  </div>
                ))}
              </dd>
            </div>
          );
        })}
      </dl>
    </section>
  );
}

function Log({ lines, groups }: { lines: readonly LogLine[]; groups: readonly Group[] }) {
  const list = useRef<HTMLOListElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const element = list.current;
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight;
  }, [lines]);
  if (lines.length === 0) return null;
  const titles = new Map(groups.map((one) => [one.node.id, one.title]));
  return (
    <section class="panel" aria-label="Log">
      <h2>Log</h2>
      <ol
        class="log"
        ref={list}
        tabIndex={0}
        onScroll={(event) => {
          const element = event.currentTarget;
          follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < 24;
        }}
      >
        {lines.map((line, at) => (
          <li key={at} class={`log-${line.severity}`}>
            {line.nodeName !== "" && <span class="log-node">{titles.get(line.nodeId) ?? line.nodeName}</span>}
            <span>{line.content}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
