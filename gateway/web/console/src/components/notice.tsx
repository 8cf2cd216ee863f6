/** What stands where there is nothing to show: empty, failed, still reading. */

import type { ApiError } from "@atelier/client";
import type { ComponentChildren } from "preact";
import { Icon } from "./icons.tsx";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="empty">
      <svg class="empty-art" viewBox="0 0 160 96" aria-hidden="true">
        <rect x="14" y="18" width="58" height="60" rx="7" />
        <rect x="52" y="10" width="58" height="60" rx="7" />
        <rect x="90" y="26" width="58" height="60" rx="7" />
        <path d="M96 74l14-16 10 10 8-7 14 14" />
        <circle cx="131" cy="43" r="4.500" />
      </svg>
      <h2>{title}</h2>
      <div class="empty-text">{children}</div>
    </section>
  );
}

/** A failure with a way out. When older data is still shown it is a strip, else it fills the place. */
export function Failure({ error, retry, strip }: { error: ApiError; retry: () => void; strip?: boolean }) {
  return (
    <section class={strip ? "failure failure-strip" : "failure"} role="alert">
      <Icon name="alert" />
      <div class="failure-text">
        <strong>{strip ? "What you see may be old" : "This could not be read"}</strong>
        <span>
          {error.message}
          {error.requestId !== null && <small> Request {error.requestId}</small>}
        </span>
      </div>
      <button type="button" class="button" onClick={retry}>
        <Icon name="retry" /> Retry
      </button>
    </section>
  );
}

/** Grey shapes where rows will be. */
export function RowSkeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeletons" role="status" aria-label="Reading">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} class="skeleton skeleton-row" />
      ))}
    </div>
  );
}

/** Grey shapes where tiles will be. */
export function TileSkeleton({ tiles = 8 }: { tiles?: number }) {
  return (
    <div class="tiles" role="status" aria-label="Reading">
      {Array.from({ length: tiles }, (_, at) => (
        <div key={at} class="skeleton skeleton-tile" />
      ))}
    </div>
  );
}
