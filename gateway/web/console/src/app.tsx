/** Which page is open. */

import { useEffect } from "preact/hooks";
import { Shell } from "./components/shell.tsx";
import { Empty } from "./components/notice.tsx";
import { href, route } from "./state/route.ts";
import { AssetsPage } from "./views/assets.tsx";
import { CostsPage } from "./views/costs.tsx";
import { GenerationPage } from "./views/generation.tsx";
import { LedgerPage } from "./views/ledger.tsx";
import { RunPage } from "./views/run.tsx";
import { RunsPage } from "./views/runs.tsx";

export function App() {
  const path = route.value.path.join("/");
  useEffect(() => scrollTo(0, 0), [path]);
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

function Page() {
  const [area, id] = route.value.path;
  switch (area) {
    case undefined:
      return <RunsPage />;
    case "runs":
      return id === undefined ? <RunsPage /> : <RunPage key={id} id={id} />;
    case "ledger":
      return id === undefined ? <LedgerPage /> : <GenerationPage key={id} id={id} />;
    case "costs":
      return <CostsPage />;
    case "assets":
      return <AssetsPage />;
    default:
      return (
        <Empty title="There is no such page">
          <a href={href([])}>Go to the runs</a>
        </Empty>
      );
  }
}
