//! Who uses whom: no service uses another's crate, only the seam knows providers.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

/// What each crate of ours may use of ours, outside its tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("atelier-proto", &[]),
    ("atelier-common", &[]),
    ("atelier-kernel", &["atelier-proto", "atelier-common"]),
    ("atelier-provider", &["atelier-proto", "atelier-common"]),
    ("atelier-tracker", &["atelier-proto", "atelier-common"]),
    ("atelier-asset", &["atelier-proto", "atelier-common"]),
    ("atelier-gateway", &["atelier-proto", "atelier-common"]),
];

#[test]
fn services_use_contracts_and_plumbing_and_never_each_other() -> anyhow::Result<()> {
    let edges = edges()?;
    assert!(edges.len() >= 9, "only {} crates were found", edges.len());
    for (name, allowed) in ALLOWED {
        let used = edges
            .get(*name)
            .with_context(|| format!("{name} is not a crate"))?;
        let ours = used.iter().filter(|used| used.starts_with("atelier-"));
        let wrong: Vec<_> = ours.filter(|used| !allowed.contains(&used.as_str())).collect();
        assert!(wrong.is_empty(), "{name} must not use {wrong:?}");
    }
    for (name, used) in &edges {
        let stores = used.iter().any(|used| used == "sea-orm");
        assert!(
            !stores
                || !matches!(
                    name.as_str(),
                    "atelier-gateway" | "atelier-provider" | "atelier-proto"
                ),
            "{name} owns no tables"
        );
    }
    Ok(())
}
#[test]
fn no_service_calls_back_to_one_that_is_before_it() -> anyhow::Result<()> {
    // Generated clients that a service's own code may name.
    let allowed: &[(&str, &[&str])] = &[
        ("tracker-svc", &[]),
        ("asset-svc", &[]),
        (
            "provider-svc",
            &["generation_service_client", "asset_service_client"],
        ),
        ("kernel-svc", &["provider_service_client", "asset_service_client"]),
    ];
    let mut seen = 0;
    for (folder, clients) in allowed {
        for file in rust_files(&atelier_tests::process::root().join(folder).join("src"))? {
            let text = std::fs::read_to_string(&file)?;
            for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                if word.ends_with("_service_client") {
                    seen += 1;
                    assert!(clients.contains(&word), "{} names {word}", file.display());
                }
            }
        }
    }
    assert!(seen >= 4, "only {seen} clients were found");
    Ok(())
}
fn edges() -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(atelier_tests::process::root())
        .output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("no packages")?;
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Ok(packages
        .iter()
        .map(|package| {
            let used = package
                .get("dependencies")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let used = used
                .filter(|used| used.get("kind").is_none_or(Value::is_null))
                .map(|used| text(used, "name"));
            (text(package, "name"), used.collect())
        })
        .collect())
}
fn rust_files(folder: &std::path::Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}
