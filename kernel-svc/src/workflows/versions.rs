//! Graphs of saved workflows: written once, read by number, brought back as a version of their own.

use atelier_common::identity::Caller;
use atelier_proto::{
    kernel::v1::{ListWorkflowVersionsRequest, WorkflowVersion},
    time,
};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, ConnectionTrait, EntityTrait, Iterable, QueryFilter, QueryOrder,
    QuerySelect, sea_query::Expr,
};

use super::{
    draft::Graph,
    rows::{page_limit, read_token, write_token},
    save::Expected,
    store::{Saved, Store},
};
use crate::{
    entity::{
        versions::{ActiveModel, Column, Entity, Model},
        workflows,
    },
    error::Error,
};

/// Versions that a workflow keeps. What runs is copied into the run, so no run misses an older one.
const MAX_VERSIONS: i64 = 1_000;

/// A page of versions.
pub struct VersionPage {
    /// The rows, newest first.
    pub rows: Vec<Model>,
    /// Token of the next page; empty at the end.
    pub next: String,
}
impl Store {
    /// A page of a workflow's versions, newest first.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], a bad page size or token; store errors.
    pub async fn versions(
        &self,
        caller: &Caller,
        request: &ListWorkflowVersionsRequest,
    ) -> Result<VersionPage, Error> {
        let limit = page_limit(request.page_size)?;
        let key = self.row(caller, &request.workflow_id).await?.workflow_key;
        let mut query = Entity::find().filter(Column::WorkflowKey.eq(&key));
        if !request.page_token.is_empty() {
            let (version, _) = read_token(&request.page_token, &key)?;
            query = query.filter(Column::Version.lt(version));
        }
        // Graphs are large, and no list shows them.
        let mut rows = query
            .select_only()
            .columns(Column::iter().filter(|column| !matches!(column, Column::Graph)))
            .expr_as(Expr::cust("''"), "graph")
            .order_by_desc(Column::Version)
            .limit(limit + 1)
            .into_model::<Model>()
            .all(self.db.read())
            .await?;
        let more = u64::try_from(rows.len()).is_ok_and(|count| count > limit);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next = rows
            .last()
            .filter(|_| more)
            .map(|row| write_token(row.version, "", &key))
            .unwrap_or_default();
        Ok(VersionPage { rows, next })
    }
    /// One version with its graph; none is the newest one.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], [`Error::VersionNotFound`]; store errors.
    pub async fn version(
        &self,
        caller: &Caller,
        id: &str,
        version: Option<i64>,
    ) -> Result<(workflows::Model, Model), Error> {
        let row = self.row(caller, id).await?;
        let version = version.unwrap_or(row.version);
        let found = find(self.db.read(), &row, version).await?;
        Ok((row, found))
    }
    /// Makes the graph of a version the newest one: the workflow, and whether this changed it.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], [`Error::VersionNotFound`], [`Error::WorkflowChanged`]; store errors.
    pub async fn restore(
        &self,
        caller: &Caller,
        id: &str,
        version: i64,
        expected: &Expected,
    ) -> Result<(Saved, bool), Error> {
        let (_, old) = self.version(caller, id, Some(version)).await?;
        let graph = Graph::read(&old.graph)?;
        self.save(
            caller,
            id,
            expected,
            &|_| {},
            Some(&graph),
            &old.note,
            Some(version),
        )
        .await
    }
}
/// Writes a version.
pub(super) async fn insert(
    tx: &impl ConnectionTrait,
    workflow_key: &str,
    version: i64,
    graph: &Graph,
    note: String,
    restored_from: Option<i64>,
    created_at: i64,
) -> Result<(), Error> {
    let row = ActiveModel {
        workflow_key: Set(workflow_key.to_owned()),
        version: Set(version),
        graph: Set(graph.text.clone()),
        graph_bytes: Set(i64::try_from(graph.text.len()).unwrap_or(i64::MAX)),
        node_count: Set(graph.node_count),
        note: Set(note),
        restored_from: Set(restored_from),
        created_at: Set(created_at),
    };
    Entity::insert(row).exec_without_returning(tx).await?;
    Ok(())
}
/// Drops the oldest versions of a workflow that has more than it keeps.
pub(super) async fn prune(tx: &impl ConnectionTrait, workflow_key: &str, newest: i64) -> Result<(), Error> {
    if newest > MAX_VERSIONS {
        Entity::delete_many()
            .filter(Column::WorkflowKey.eq(workflow_key))
            .filter(Column::Version.lte(newest - MAX_VERSIONS))
            .exec(tx)
            .await?;
    }
    Ok(())
}
async fn find(db: &impl ConnectionTrait, row: &workflows::Model, version: i64) -> Result<Model, Error> {
    Entity::find_by_id((row.workflow_key.clone(), version))
        .one(db)
        .await?
        .ok_or_else(|| Error::VersionNotFound {
            workflow: row.workflow_id.clone(),
            version,
        })
}
/// The graph of a version.
pub(super) async fn graph(
    db: &impl ConnectionTrait,
    row: &workflows::Model,
    version: i64,
) -> Result<String, Error> {
    Ok(find(db, row, version).await?.graph)
}
/// The message of a version; the graph only when asked for.
#[must_use]
pub fn version_to_proto(workflow_id: &str, row: Model, with_graph: bool) -> WorkflowVersion {
    let Model {
        workflow_key: _,
        version,
        graph,
        graph_bytes,
        node_count,
        note,
        restored_from,
        created_at,
    } = row;
    WorkflowVersion {
        workflow_id: workflow_id.to_owned(),
        version,
        note,
        restored_from,
        node_count,
        graph_bytes,
        created_at: Some(time::proto_from_micros(created_at)),
        graph_json: with_graph.then_some(graph),
    }
}
