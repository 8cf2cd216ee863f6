use std::io::Write;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sample {
    name: String,
    limit: u32,
    tags: Vec<String>,
    peers: BTreeMap<String, String>,
    #[serde(with = "secret::optional")]
    key: Option<SecretString>,
    maximum: Option<u64>,
    reconcile: Reconcile,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reconcile {
    #[serde(with = "humantime_serde")]
    interval: Duration,
    batch: u32,
}

impl Default for Reconcile {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(300),
            batch: 10,
        }
    }
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            name: "sample".into(),
            limit: 5,
            tags: vec![],
            peers: BTreeMap::new(),
            key: None,
            maximum: None,
            reconcile: Reconcile::default(),
        }
    }
}

impl Settings for Sample {
    const SECTION: &'static str = "sample";
    const ALIASES: &'static [(&'static str, &'static str)] = &[("SAMPLE_BATCH", "reconcile.batch")];
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn later_layers_win_and_their_origin_is_known() {
    let file =
        file("[sample]\nlimit = 7\nreconcile.interval = \"1m\"\nreconcile.batch = 3\n[other]\nx = 1\n");
    let loaded = Loader::bare()
        .file(Some(file.path()))
        .variable("ATELIER_SAMPLE__RECONCILE__INTERVAL", "90s")
        .variable("ATELIER_SAMPLE__NAME", "123")
        .variable("ATELIER_SAMPLE__TAGS", "a, b")
        .variable("ATELIER_SAMPLE__PEERS__TRACKER", "http://127.0.0.1:1")
        .variable("ATELIER_SAMPLE__MAXIMUM", "9")
        .variable("ATELIER_OTHER__NAME", "not ours")
        .flag("--limit", "sample.limit", 8)
        .flag("--other", "other.thing", 8)
        .load::<Sample>()
        .unwrap();
    let settings = &loaded.settings;
    assert_eq!(
        (settings.name.as_str(), settings.limit, settings.maximum),
        ("123", 8, Some(9))
    );
    assert_eq!(settings.tags, ["a", "b"]);
    assert_eq!(settings.peers["tracker"], "http://127.0.0.1:1");
    assert_eq!(
        (settings.reconcile.interval, settings.reconcile.batch),
        (Duration::from_secs(90), 3)
    );
    let page = loaded.print();
    assert!(page.contains("limit = 8  # --limit"), "{page}");
    assert!(
        page.contains("reconcile.interval = \"1m 30s\"  # ATELIER_SAMPLE__RECONCILE__INTERVAL"),
        "{page}"
    );
    assert!(
        page.contains(&format!("reconcile.batch = 3  # {}", file.path().display())),
        "{page}"
    );
}

#[test]
fn a_typo_names_key_and_layer() {
    let file = file("[sample]\nreconcile.intervall = \"1m\"\n");
    let error = Loader::bare()
        .file(Some(file.path()))
        .load::<Sample>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("`sample.reconcile.intervall`"), "{error}");
    assert!(error.contains(&file.path().display().to_string()), "{error}");
    assert!(error.contains("interval, batch"), "{error}");

    let error = Loader::bare()
        .variable("ATELIER_SAMPLE__LIMITT", "4")
        .load::<Sample>()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("ATELIER_SAMPLE__LIMITT") && error.contains("`sample.limitt`"),
        "{error}"
    );

    let error = Loader::bare()
        .variable("ATELIER_SAMPLE__NAME__X", "4")
        .load::<Sample>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("ATELIER_SAMPLE__NAME__X"), "{error}");
}

#[test]
fn a_wrong_value_names_key_and_layer() {
    let error = Loader::bare()
        .variable("ATELIER_SAMPLE__LIMIT", "many")
        .load::<Sample>()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("ATELIER_SAMPLE__LIMIT") && error.contains("`sample.limit`"),
        "{error}"
    );
    let error = Loader::bare()
        .variable("ATELIER_SAMPLE__RECONCILE__INTERVAL", "soon")
        .load::<Sample>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("`sample.reconcile.interval`"), "{error}");
    let file = file("[sample]\nkey = \"hidden\nlimit = 3\n");
    let error = Loader::bare()
        .file(Some(file.path()))
        .load::<Sample>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2") && !error.contains("hidden"), "{error}");
}

#[test]
fn secrets_come_from_files_and_are_never_printed() {
    let file = file("hunter2\n");
    let loaded = Loader::bare()
        .variable("ATELIER_SAMPLE__KEY_FILE", file.path().display().to_string())
        .load::<Sample>()
        .unwrap();
    assert_eq!(loaded.settings.key.as_ref().unwrap().expose_secret(), "hunter2");
    let page = loaded.print();
    assert!(
        page.contains("key = \"***\"") && !page.contains("hunter2"),
        "{page}"
    );
    assert!(!format!("{:?}", loaded.settings).contains("hunter2"));
}

#[test]
fn aliases_work_and_unknown_sections_can_be_refused() {
    let loaded = Loader::bare()
        .variable("SAMPLE_BATCH", "77")
        .load::<Sample>()
        .unwrap();
    assert_eq!(loaded.settings.reconcile.batch, 77);
    let file = file("[sampel]\nlimit = 3\n");
    let loader = Loader::bare().file(Some(file.path()));
    assert!(loader.load::<Sample>().is_ok());
    let error = loader.check_sections(&["sample"]).unwrap_err().to_string();
    assert!(error.contains("`sampel`"), "{error}");
}
