//! The metrics of this service; their names are a public interface.

use atelier_common::metrics::{Kind, Metric};
use metrics::Unit;

/// Artifacts committed, by `outcome`: `ok` or `failed`.
pub const COMMITS: &str = "atelier_asset_commits_total";
/// Seconds that a commit took.
pub const COMMIT_DURATION: &str = "atelier_asset_commit_duration_seconds";
/// Uploads, by `outcome`: `created`, `repeated` or `failed`.
pub const UPLOADS: &str = "atelier_asset_uploads_total";
/// Bytes of uploads that became assets.
pub const UPLOADED: &str = "atelier_asset_uploaded_bytes_total";
/// Bytes that downloads were asked for.
pub const DOWNLOADED: &str = "atelier_asset_downloaded_bytes_total";

/// All of them, for the page and the documentation.
pub const ALL: &[Metric] = &[
    Metric {
        name: COMMITS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Artifacts committed.",
    },
    Metric {
        name: COMMIT_DURATION,
        kind: Kind::Histogram,
        unit: Unit::Seconds,
        help: "Time that the commit of an artifact took.",
    },
    Metric {
        name: UPLOADS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Uploads answered.",
    },
    Metric {
        name: UPLOADED,
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Bytes of uploads that became assets.",
    },
    Metric {
        name: DOWNLOADED,
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Bytes that downloads were asked for.",
    },
];
