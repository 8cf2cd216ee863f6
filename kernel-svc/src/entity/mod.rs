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
        /// The event that starts it, a `TriggerEvent`.
        pub trigger_event: Option<Vec<u8>>,
        /// What it waits for, a `MapValue`; with a suspended run.
        pub suspension: Option<Vec<u8>>,
        /// When it wants to go on by itself, 0: at once; with a suspended run.
        pub resume_at: Option<i64>,
        /// States that nodes were resumed with, by node id, a `MapValue`.
        pub resume: Option<Vec<u8>>,
        /// How often it was taken up since it last committed an artifact.
        pub adoptions: i64,
        /// Artifacts it had when it was last taken up.
        pub adopted_artifacts: i64,
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
        /// First number of the segment that holds its event; `None` while it is not in the log.
        pub segment: Option<i64>,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
/// What was said in a stretch of a log.
pub mod checkpoints {
    use sea_orm::entity::prelude::*;

    /// The stretch from the checkpoint before this one, or from the beginning.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "job_checkpoints")]
    pub struct Model {
        /// The run.
        #[sea_orm(primary_key, auto_increment = false)]
        pub job_key: String,
        /// Number of the last event of the stretch.
        #[sea_orm(primary_key, auto_increment = false)]
        pub seq: i64,
        /// What was said in it, as `relay/` writes it.
        pub state: Vec<u8>,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
/// What finished invocations emitted, where the log alone cannot tell it.
pub mod frames {
    use sea_orm::entity::prelude::*;

    /// One finished invocation.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "job_frames")]
    pub struct Model {
        /// The run.
        #[sea_orm(primary_key, auto_increment = false)]
        pub job_key: String,
        /// The node.
        #[sea_orm(primary_key, auto_increment = false)]
        pub node_id: String,
        /// Key of the invocation: lineage and ordinal.
        #[sea_orm(primary_key, auto_increment = false)]
        pub invocation: String,
        /// Its frames in order, a `ListValue` of maps.
        pub frames: Vec<u8>,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
/// What came from outside while a run went on.
pub mod inputs {
    use sea_orm::entity::prelude::*;

    /// A pushed value, the end of an input, a control event, or the answer to a question.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "job_inputs")]
    pub struct Model {
        /// The run.
        #[sea_orm(primary_key, auto_increment = false)]
        pub job_key: String,
        /// Place in the order of arrival, from 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub n: i64,
        /// The caller's name for it, unique in the run.
        pub input_id: String,
        /// `push`, `control` or `verdict`.
        pub kind: String,
        /// The input, the controlled node, or the question that is answered.
        pub name: String,
        /// Only along the edges of this output.
        pub handle: Option<String>,
        /// A `Value`, the event's properties as a `MapValue`, or a `Verdict`.
        pub payload: Option<Vec<u8>>,
        /// Whether the input ends with it.
        pub finish: bool,
        /// Whether the run has taken it.
        pub done: bool,
        /// Why the run refused it.
        pub error: Option<String>,
        /// Outputs of the event's invocation, a `MapValue`.
        pub outcome: Option<Vec<u8>>,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
