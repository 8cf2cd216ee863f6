# Formatting, lints, tests.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- --deny warnings
    cargo build --workspace --bins
    cargo test --workspace

# Everything, with what it needs.
test:
    scripts/test.sh

# The server on a folder of this checkout.
up:
    cargo run -- up --data .atelier

# The built console, after a change.
console:
    cd gateway/web && npm ci && npm run build

# The index of cases, after tests were named.
index:
    UPDATE_INDEX=1 cargo test -p atelier-tests --test conformance
