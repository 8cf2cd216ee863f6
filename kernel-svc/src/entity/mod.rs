//! The tables as they are; no logic.

mod saved;

pub use saved::{versions, workflows};

/// Runs.
pub mod jobs {
    use sea_orm::entity::prelude::*;

    /// One run.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "jobs")]
    pub struct Model {
        /// Internal key; clients choose job ids, and two users may choose the same.
        #[sea_orm(primary_key, auto_increment = false)]
        pub job_key: String,
        /// Owner.
        pub user_id: String,
        /// The id that its client knows, unique per user.
        pub job_id: String,
        /// The workflow it belongs to.
        pub workflow_id: Option<String>,
        /// Name shown in lists.
        pub name: String,
        /// queued, running, completed, failed, cancelled or suspended.
        pub status: String,
        /// Why it failed.
        pub error: Option<String>,
        /// Machine-readable reason.
        pub error_code: Option<String>,
        /// Issues of the graph, JSON.
        pub issues: Option<String>,
        /// Hash of the request, to tell a repeat from another one.
        pub fingerprint: String,
        /// The graph, JSON.
        pub graph: String,
        /// Parameters, a `MapValue`.
        pub params: Vec<u8>,
        /// Options, a `RunOptions`.
        pub options: Vec<u8>,
        /// Results, a `MapValue`.
        pub outputs: Option<Vec<u8>>,
        /// Microseconds, like all instants here.
        pub created_at: i64,
        /// When it started.
        pub started_at: Option<i64>,
        /// When it ended.
        pub finished_at: Option<i64>,
        /// Number of its newest event.
        pub last_seq: i64,
        /// Artifacts that were published.
        pub artifact_count: i64,
        /// The instance that drives it.
        pub owner: Option<String>,
        /// Until when.
        pub lease_until: i64,
        /// When somebody first asked to cancel it.
        pub cancel_requested_at: Option<i64>,
        /// The version of the saved workflow that it runs.
        pub workflow_version: Option<i64>,
        /// The run whose node started it.
        pub parent_job_id: Option<String>,
        /// That node.
        pub parent_node_id: Option<String>,
        /// How many runs it is inside of; 0 for one that a client started.
        pub depth: i64,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
/// Event logs, in segments of consecutive events.
pub mod segments {
    use sea_orm::entity::prelude::*;

    /// Events that were committed together.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "job_segments")]
    pub struct Model {
        /// The run.
        #[sea_orm(primary_key, auto_increment = false)]
        pub job_key: String,
        /// Number of the first event.
        #[sea_orm(primary_key, auto_increment = false)]
        pub first_seq: i64,
        /// Number of the last event.
        pub last_seq: i64,
        /// How many there are; fewer than the numbers span when some are not kept.
        pub event_count: i64,
        /// Length-delimited `JobEvent`s.
        pub payload: Vec<u8>,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
/// Committed artifacts.
pub mod artifacts {
    use sea_orm::entity::prelude::*;

    /// One commit of a node.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "job_artifacts")]
    pub struct Model {
        /// The run.
        #[sea_orm(primary_key, auto_increment = false)]
        pub job_key: String,
        /// The node.
        #[sea_orm(primary_key, auto_increment = false)]
        pub node_id: String,
        /// k-th artifact of the node, from 0.
        #[sea_orm(primary_key, auto_increment = false)]
        pub idx: i64,
        /// Key of the commit: lineage and ordinal.
        pub invocation: String,
        /// Whether its event is in the log.
        pub published: bool,
        /// The event as committed, a `JobEvent` without number, while its media are being saved.
        pub event: Option<Vec<u8>>,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
