//! `docs/metrics.md` is the constants of the crates. `UPDATE_DOCS=1` writes it.

use std::{collections::BTreeSet, fmt::Write};

use atelier_common::metrics::{Kind, Metric};

/// The crates that have metrics, in the order of the page.
const CRATES: &[(&str, &[Metric])] = &[
    ("common", atelier_common::metrics::ALL),
    ("gateway", atelier_gateway::metrics::ALL),
    ("kernel-svc", atelier_kernel::metrics::ALL),
    ("provider-svc", atelier_provider::metrics::ALL),
    ("tracker-svc", atelier_tracker::metrics::ALL),
    ("asset-svc", atelier_asset::metrics::ALL),
];
const HEAD: &str = "# Metrics

Every process serves its metrics at `/metrics` in the Prometheus text format. Names are a public interface. This page is
written from the constants in each crate's `metrics.rs`, where the labels of each metric are named:
`UPDATE_DOCS=1 cargo test -p atelier-tests --test conformance metrics`.

| Name | Kind | Unit | Meaning | Crate |
|---|---|---|---|---|
";

#[test]
fn the_page_of_metrics_is_what_the_crates_say() -> anyhow::Result<()> {
    let file = atelier_tests::process::root().join("docs/metrics.md");
    let page = page()?;
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &page)?;
    }
    let written = std::fs::read_to_string(&file)?;
    assert!(
        written == page,
        "docs/metrics.md is stale: run the test with UPDATE_DOCS=1"
    );
    Ok(())
}
#[test]
fn names_are_unique_and_say_what_they_are() {
    let mut names = BTreeSet::new();
    for (folder, metrics) in CRATES {
        assert!(!metrics.is_empty(), "{folder} has no metrics");
        for Metric {
            name,
            kind,
            unit,
            help,
        } in *metrics
        {
            assert!(names.insert(*name), "{name} is there twice");
            assert!(name.starts_with("atelier_"), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert_eq!(
                name.trim_end_matches("_total").ends_with(unit.as_str()),
                unit.as_str() != "count",
                "{name}"
            );
            assert!(
                help.ends_with('.') && !help.contains(['|', '\n']),
                "{name}: {help}"
            );
        }
    }
}
fn page() -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    for (folder, metrics) in CRATES {
        for Metric {
            name,
            kind,
            unit,
            help,
        } in *metrics
        {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            writeln!(
                page,
                "| `{name}` | {kind} | {} | {help} | {folder} |",
                unit.as_str()
            )?;
        }
    }
    Ok(page)
}
