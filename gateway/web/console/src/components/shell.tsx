/** What is around every page: the name, the way between the pages, and whether the gateway answers. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { reachable } from "../state/gateway.ts";
import { href, route } from "../state/route.ts";
import { Icon, type IconName } from "./icons.tsx";

const AREAS: readonly { area: string; label: string; icon: IconName }[] = [
  { area: "runs", label: "Runs", icon: "runs" },
  { area: "ledger", label: "Ledger", icon: "ledger" },
  { area: "costs", label: "Costs", icon: "costs" },
  { area: "assets", label: "Assets", icon: "assets" },
];

export function Shell({ children }: { children: ComponentChildren }) {
  const open = route.value.path[0] ?? "runs";
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class="bar">
        <div class="bar-in">
          <a class="brand" href={href([])} aria-label="atelier, to the runs">
            <svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
              <path d="M16 6v3M9.500 26 16 9l6.500 17M11.800 20h8.400" />
            </svg>
            <span>atelier</span>
          </a>
          <nav class="nav" aria-label="Pages">
            {AREAS.map(({ area, label, icon }) => (
              <a key={area} href={href([area])} aria-current={open === area ? "page" : undefined}>
                <Icon name={icon} />
                <span>{label}</span>
              </a>
            ))}
          </nav>
          <span class={`reach ${reachable.value ? "" : "reach-off"}`} role="status">
            {reachable.value ? "" : "Not connected"}
          </span>
        </div>
      </header>
      <main id="main" class="page" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

/** Names the page in the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "atelier" : `${title} · atelier`;
  }, [title]);
}
