//! The tables of saved workflows.

/// Saved workflows.
pub mod workflows {
    use sea_orm::entity::prelude::*;

    /// One workflow, without its graphs.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "workflows")]
    pub struct Model {
        /// Internal key; clients may choose workflow ids, and two users may choose the same.
        #[sea_orm(primary_key, auto_increment = false)]
        pub workflow_key: String,
        /// Owner.
        pub user_id: String,
        /// The id that its client knows, unique per user.
        pub workflow_id: String,
        /// Name for people.
        pub name: String,
        /// What it does.
        pub description: String,
        /// Words to find it by, a JSON list.
        pub tags: String,
        /// Name, description and tags in lower case, for filters.
        pub search: String,
        /// Settings, a JSON object.
        pub settings: String,
        /// Values of its inputs, a `MapValue`.
        pub params: Vec<u8>,
        /// What it is used as.
        pub run_mode: Option<String>,
        /// Other fields of its file, a JSON object.
        pub extra: String,
        /// Number of its newest version.
        pub version: i64,
        /// Grows with every change.
        pub revision: i64,
        /// Nodes of the newest version.
        pub node_count: i64,
        /// Microseconds, like all instants here.
        pub created_at: i64,
        /// When it was last changed.
        pub updated_at: i64,
        /// When it was deleted.
        pub deleted_at: Option<i64>,
        /// The idempotency key that it was made with, unique per user.
        pub create_key: Option<String>,
        /// Hash of the request that made it.
        pub create_hash: String,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
/// Graphs of saved workflows, written once.
pub mod versions {
    use sea_orm::entity::prelude::*;

    /// One version.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "workflow_versions")]
    pub struct Model {
        /// The workflow.
        #[sea_orm(primary_key, auto_increment = false)]
        pub workflow_key: String,
        /// Its number, from 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub version: i64,
        /// The graph, JSON.
        pub graph: String,
        /// Size of the graph, in bytes.
        pub graph_bytes: i64,
        /// How many nodes it has.
        pub node_count: i64,
        /// What its author said about it.
        pub note: String,
        /// The version whose graph it brought back.
        pub restored_from: Option<i64>,
        /// When it was saved.
        pub created_at: i64,
    }
    /// None.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}
    impl ActiveModelBehavior for ActiveModel {}
}
