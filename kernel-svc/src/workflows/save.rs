//! Changes of saved workflows: each is written under the revision that it was made for, so of two at once one is told.

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::UpdateWorkflowRequest;
use prost::Message;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, sea_query::Expr};

use super::{
    draft::{self, Graph},
    rows::{etag, read_tags, search_text, tags_text},
    store::{Saved, Store},
    versions,
};
use crate::{
    entity::workflows::{Column, Entity, Model},
    error::Error,
};

/// Tries to save over somebody who saves at the same time, for callers that expect no version.
const TRIES: usize = 16;

/// What a caller takes a workflow for.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// The number of its newest version.
    pub version: Option<i64>,
    /// Its etag.
    pub etag: Option<String>,
}
impl Expected {
    pub(super) fn holds(&self, row: &Model) -> Result<(), Error> {
        let version = self.version.is_none_or(|version| version == row.version);
        // The quotes of an HTTP header may have come along.
        let bare = |etag: &str| etag.trim_start_matches("W/").trim_matches('"').to_owned();
        let etag = self.etag.as_deref().is_none_or(|text| bare(text) == etag(row));
        if version && etag {
            return Ok(());
        }
        Err(Error::WorkflowChanged {
            workflow: row.workflow_id.clone(),
            version: row.version,
            etag: self::etag(row),
        })
    }
}
impl Store {
    /// Changes what a request names: the workflow, and whether this call changed it.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], a bad field, [`Error::WorkflowChanged`]; store errors.
    pub async fn update(
        &self,
        caller: &Caller,
        request: UpdateWorkflowRequest,
    ) -> Result<(Saved, bool), Error> {
        let UpdateWorkflowRequest {
            workflow_id,
            expected_version,
            expected_etag,
            name,
            description,
            tags,
            settings_json,
            params,
            run_mode,
            extra_json,
            graph_json,
            note,
        } = request;
        let expected = Expected {
            version: expected_version,
            etag: expected_etag,
        };
        let name = name.as_deref().map(draft::name).transpose()?;
        let description = description.as_deref().map(draft::description).transpose()?;
        let tags = tags.map(|tags| draft::tags(&tags.values)).transpose()?;
        let settings = settings_json.as_deref().map(draft::settings).transpose()?;
        let params = params.map(draft::params).transpose()?;
        let run_mode = run_mode.map(|mode| draft::run_mode(Some(&mode))).transpose()?;
        let extra = extra_json.as_deref().map(draft::extra).transpose()?;
        let graph = graph_json.as_deref().map(Graph::read).transpose()?;
        let note = draft::note(&note)?;
        let change = |row: &mut Model| {
            let given = |field: &mut String, value: &Option<String>| {
                if let Some(value) = value {
                    field.clone_from(value);
                }
            };
            given(&mut row.name, &name);
            given(&mut row.description, &description);
            given(&mut row.tags, &tags.as_deref().map(tags_text));
            given(&mut row.settings, &settings);
            given(&mut row.extra, &extra);
            if let Some(params) = &params {
                row.params = params.encode_to_vec();
            }
            if let Some(run_mode) = &run_mode {
                row.run_mode.clone_from(run_mode);
            }
        };
        self.save(
            caller,
            &workflow_id,
            &expected,
            &change,
            graph.as_ref(),
            &note,
            None,
        )
        .await
    }
    /// Writes a change of the record and a graph that may be new, under the revision that they were made for.
    #[expect(clippy::too_many_arguments, reason = "all that a save is made of")]
    pub(super) async fn save(
        &self,
        caller: &Caller,
        id: &str,
        expected: &Expected,
        change: &(dyn Fn(&mut Model) + Sync),
        graph: Option<&Graph>,
        note: &str,
        restored_from: Option<i64>,
    ) -> Result<(Saved, bool), Error> {
        for _ in 0..TRIES {
            let Saved { row, graph: newest } = self.get(caller, id).await?;
            let mut next = row.clone();
            change(&mut next);
            let graph = graph.filter(|graph| graph.text != newest && !same_json(&newest, &graph.json));
            if next == row && graph.is_none() {
                return Ok((Saved { row, graph: newest }, false));
            }
            expected.holds(&row)?;
            if let Some(graph) = graph {
                next.version += 1;
                next.node_count = graph.node_count;
            }
            next.revision += 1;
            // Never earlier than before, whatever the clocks of two replicas say.
            next.updated_at = self.now().max(row.updated_at);
            next.search = search_text(&next.name, &next.description, &read_tags(&next.tags));
            let tx = self.db.begin().await?;
            if !write(&*tx, &row, &next).await? {
                tx.rollback().await?;
                continue;
            }
            if let Some(graph) = graph {
                let (key, now) = (&next.workflow_key, next.updated_at);
                versions::insert(
                    &*tx,
                    key,
                    next.version,
                    graph,
                    note.to_owned(),
                    restored_from,
                    now,
                )
                .await?;
                versions::prune(&*tx, key, next.version).await?;
            }
            tx.commit().await?;
            let graph = graph.map_or(newest, |graph| graph.text.clone());
            return Ok((Saved { row: next, graph }, true));
        }
        // Others were faster each time; the caller may try again.
        let row = self.row(caller, id).await?;
        Err(Error::WorkflowChanged {
            workflow: id.to_owned(),
            version: row.version,
            etag: etag(&row),
        })
    }
    /// Deletes a workflow. Runs have their own copies of what they need.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], [`Error::WorkflowChanged`]; store errors.
    pub async fn delete(&self, caller: &Caller, id: &str, expected: &Expected) -> Result<(), Error> {
        for _ in 0..TRIES {
            let row = self.row(caller, id).await?;
            expected.holds(&row)?;
            let mut next = row.clone();
            next.deleted_at = Some(self.now());
            next.revision += 1;
            let tx = self.db.begin().await?;
            let deleted = write(&*tx, &row, &next).await?;
            tx.commit().await?;
            if deleted {
                return Ok(());
            }
        }
        let row = self.row(caller, id).await?;
        Err(Error::WorkflowChanged {
            workflow: id.to_owned(),
            version: row.version,
            etag: etag(&row),
        })
    }
}
/// Writes a row over the one that it was made from; false when that one is gone.
async fn write(tx: &impl ConnectionTrait, from: &Model, to: &Model) -> Result<bool, Error> {
    let written = Entity::update_many()
        .col_expr(Column::Name, Expr::value(to.name.as_str()))
        .col_expr(Column::Description, Expr::value(to.description.as_str()))
        .col_expr(Column::Tags, Expr::value(to.tags.as_str()))
        .col_expr(Column::Search, Expr::value(to.search.as_str()))
        .col_expr(Column::Settings, Expr::value(to.settings.as_str()))
        .col_expr(Column::Params, Expr::value(to.params.clone()))
        .col_expr(Column::RunMode, Expr::value(to.run_mode.clone()))
        .col_expr(Column::Extra, Expr::value(to.extra.as_str()))
        .col_expr(Column::Version, Expr::value(to.version))
        .col_expr(Column::Revision, Expr::value(to.revision))
        .col_expr(Column::NodeCount, Expr::value(to.node_count))
        .col_expr(Column::UpdatedAt, Expr::value(to.updated_at))
        .col_expr(Column::DeletedAt, Expr::value(to.deleted_at))
        .filter(Column::WorkflowKey.eq(&from.workflow_key))
        .filter(Column::Revision.eq(from.revision))
        .exec(tx)
        .await?
        .rows_affected;
    Ok(written == 1)
}
fn same_json(text: &str, json: &serde_json::Value) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|other| other == *json)
}
