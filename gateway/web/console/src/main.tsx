import { render } from "preact";
import { App } from "./app.tsx";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/controls.css";
import "./styles/figures.css";
import "./styles/notice.css";
import "./styles/runs.css";
import "./styles/run.css";
import "./styles/ledger.css";
import "./styles/costs.css";
import "./styles/tiles.css";
import "./styles/assets.css";
import "./styles/lightbox.css";

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
