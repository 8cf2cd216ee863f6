//! Records of saved workflows: made once, changed under their revision, read scoped by their owner.

use atelier_common::{clock::Clock, db::Db, identity::Caller};
use atelier_proto::{
    common::v1::MapValue,
    kernel::v1::{CreateWorkflowRequest, ListWorkflowsRequest, UpdateWorkflowRequest, Workflow},
    time,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use prost::Message;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
    sea_query::{Expr, LikeExpr, OnConflict},
};

use super::{
    draft::{self, Draft, Graph},
    versions,
};
use crate::{
    entity::workflows::{ActiveModel, Column, Entity, Model},
    error::Error,
};

/// Rows on a page when none is asked for.
const DEFAULT_PAGE: u64 = 50;
/// Rows on a page at most.
const MAX_PAGE: u64 = 500;
/// Workflows of one user at most.
const MAX_WORKFLOWS: u64 = 10_000;
/// Longest text to look for, in bytes, and most words of it.
const MAX_QUERY: usize = 500;
/// Tries to save over somebody who saves at the same time, for callers that expect no version.
const TRIES: usize = 16;
/// Stands around each tag in the column for filters; no tag has it.
const MARK: char = '\u{1f}';

/// Reads and writes saved workflows.
#[derive(Clone)]
pub struct Store {
    pub(super) db: Db,
    clock: Clock,
}
/// A workflow with its newest graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The record.
    pub row: Model,
    /// The graph, JSON.
    pub graph: String,
}
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
            etag: crate::workflows::store::etag(row),
        })
    }
}
/// A page of workflows.
pub struct Page {
    /// The rows, newest first.
    pub rows: Vec<Model>,
    /// Token of the next page; empty at the end.
    pub next: String,
}
impl Store {
    /// A store on a database.
    #[must_use]
    pub fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock }
    }
    pub(super) fn now(&self) -> i64 {
        self.clock.now().timestamp_micros()
    }
    /// Saves what a request asks for: the workflow, and whether this call saved it.
    ///
    /// # Errors
    /// A bad field; a key or an id that belongs to another request; too many workflows; store errors.
    pub async fn create(
        &self,
        caller: &Caller,
        request: CreateWorkflowRequest,
    ) -> Result<(Saved, bool), Error> {
        let CreateWorkflowRequest {
            workflow_id,
            name,
            description,
            tags,
            settings_json,
            params,
            run_mode,
            extra_json,
            graph_json,
            note,
            idempotency_key,
        } = request;
        let draft = Draft {
            name: draft::name(&name)?,
            description: draft::description(&description)?,
            tags: draft::tags(&tags.unwrap_or_default().values)?,
            settings: draft::settings(&settings_json)?,
            params: draft::params(params.unwrap_or_default())?,
            run_mode: draft::run_mode(run_mode.as_deref())?,
            extra: draft::extra(&extra_json)?,
            graph: Graph::read(&graph_json)?,
            note: draft::note(&note)?,
        };
        self.insert(caller, &workflow_id, &idempotency_key, draft).await
    }
    /// Saves a draft under an id and a key that may be empty: the workflow, and whether this call saved it.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub async fn insert(
        &self,
        caller: &Caller,
        id: &str,
        key: &str,
        draft: Draft,
    ) -> Result<(Saved, bool), Error> {
        let (id, key) = (draft::id(id)?, draft::key(key)?);
        let hash = fingerprint(id, &draft);
        let now = self.now();
        let workflow_key = uuid::Uuid::now_v7().to_string();
        let workflow_id = if id.is_empty() {
            uuid::Uuid::now_v7().to_string()
        } else {
            id.to_owned()
        };
        let row = ActiveModel {
            workflow_key: Set(workflow_key.clone()),
            user_id: Set(caller.user_id.clone()),
            workflow_id: Set(workflow_id.clone()),
            search: Set(search_text(&draft.name, &draft.description, &draft.tags)),
            name: Set(draft.name),
            description: Set(draft.description),
            tags: Set(tags_text(&draft.tags)),
            settings: Set(draft.settings),
            params: Set(draft.params.encode_to_vec()),
            run_mode: Set(draft.run_mode),
            extra: Set(draft.extra),
            version: Set(1),
            revision: Set(1),
            node_count: Set(draft.graph.node_count),
            created_at: Set(now),
            updated_at: Set(now),
            deleted_at: Set(None),
            create_key: Set(key.map(ToOwned::to_owned)),
            create_hash: Set(hash.clone()),
        };
        let tx = self.db.begin().await?;
        // One statement decides between callers that come at once; whoever loses reads the winner's row.
        let inserted = Entity::insert(row)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .exec_without_returning(&*tx)
            .await?
            == 1;
        if inserted {
            let count = of(caller).count(&*tx).await?;
            if count > MAX_WORKFLOWS {
                tx.rollback().await?;
                return Err(Error::TooManyWorkflows(MAX_WORKFLOWS));
            }
            versions::insert(&*tx, &workflow_key, 1, &draft.graph, draft.note, None, now).await?;
        }
        let found = match (inserted, key) {
            (false, Some(key)) => {
                all_even_deleted(caller)
                    .filter(Column::CreateKey.eq(key))
                    .one(&*tx)
                    .await?
            }
            _ => None,
        };
        let by_key = found.is_some();
        let row = match found {
            Some(row) => Some(row),
            None => {
                all_even_deleted(caller)
                    .filter(Column::WorkflowId.eq(&workflow_id))
                    .one(&*tx)
                    .await?
            }
        };
        let row = row.ok_or_else(|| Error::WorkflowNotFound(workflow_id.clone()))?;
        tx.commit().await?;
        if !inserted && (row.create_hash != hash || row.deleted_at.is_some()) {
            return Err(match key {
                Some(key) if by_key => Error::IdempotencyConflict(key.to_owned()),
                _ => Error::WorkflowIdUsed(workflow_id),
            });
        }
        let graph = versions::graph(self.db.read(), &row, row.version).await?;
        Ok((Saved { row, graph }, inserted))
    }
    /// One workflow of the caller, without its graph.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], the same for foreign, deleted and missing; store errors.
    pub async fn row(&self, caller: &Caller, id: &str) -> Result<Model, Error> {
        of(caller)
            .filter(Column::WorkflowId.eq(id))
            .one(self.db.read())
            .await?
            .ok_or_else(|| Error::WorkflowNotFound(id.to_owned()))
    }
    /// One workflow of the caller.
    ///
    /// # Errors
    /// As [`Store::row`].
    pub async fn get(&self, caller: &Caller, id: &str) -> Result<Saved, Error> {
        let row = self.row(caller, id).await?;
        let graph = versions::graph(self.db.read(), &row, row.version).await?;
        Ok(Saved { row, graph })
    }
    /// A page of the caller's workflows, newest first.
    ///
    /// # Errors
    /// A bad page size, token or filter; store errors.
    pub async fn list(&self, caller: &Caller, request: &ListWorkflowsRequest) -> Result<Page, Error> {
        let ListWorkflowsRequest {
            page_size,
            page_token,
            query: text,
            tag,
            run_mode,
            name,
        } = request;
        let limit = page_limit(*page_size)?;
        if text.len() > MAX_QUERY {
            return Err(Error::InvalidField {
                field: "query",
                wrong: format!("must have at most {MAX_QUERY} bytes"),
            });
        }
        let mut query = of(caller);
        for word in text.to_lowercase().split_whitespace() {
            query = query.filter(Column::Search.like(contains(word)));
        }
        if let Some(tag) = tag {
            let marked = format!("{MARK}{}{MARK}", tag.trim().to_lowercase());
            query = query.filter(Column::Search.like(contains(&marked)));
        }
        if let Some(name) = name {
            query = query.filter(Column::Name.eq(name.trim()));
        }
        query = match draft::run_mode(run_mode.as_deref())? {
            None => query,
            Some(mode) if mode == "workflow" => query.filter(
                Condition::any()
                    .add(Column::RunMode.eq(mode))
                    .add(Column::RunMode.is_null()),
            ),
            Some(mode) => query.filter(Column::RunMode.eq(mode)),
        };
        let filter = format!("{text:?}/{tag:?}/{run_mode:?}/{name:?}");
        if !page_token.is_empty() {
            let (at, key) = read_token(page_token, &filter)?;
            query = query.filter(
                Condition::any().add(Column::CreatedAt.lt(at)).add(
                    Condition::all()
                        .add(Column::CreatedAt.eq(at))
                        .add(Column::WorkflowKey.lt(key)),
                ),
            );
        }
        let mut rows = query
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::WorkflowKey)
            .limit(limit + 1)
            .all(self.db.read())
            .await?;
        let more = u64::try_from(rows.len()).is_ok_and(|count| count > limit);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next = rows
            .last()
            .filter(|_| more)
            .map(|row| write_token(row.created_at, &row.workflow_key, &filter))
            .unwrap_or_default();
        Ok(Page { rows, next })
    }
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
fn of(caller: &Caller) -> Select<Entity> {
    all_even_deleted(caller).filter(Column::DeletedAt.is_null())
}
fn all_even_deleted(caller: &Caller) -> Select<Entity> {
    Entity::find().filter(Column::UserId.eq(&caller.user_id))
}
fn same_json(text: &str, json: &serde_json::Value) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|other| other == *json)
}
/// What a request asks for, to tell a repeat from another one.
fn fingerprint(id: &str, draft: &Draft) -> String {
    let Draft {
        name,
        description,
        tags,
        settings,
        params,
        run_mode,
        extra,
        graph,
        note,
    } = draft;
    let mut hash = blake3::Hasher::new();
    let run_mode = run_mode.as_deref().unwrap_or_default();
    let tags = tags_text(tags);
    for part in [
        id,
        name,
        description,
        &tags,
        settings,
        run_mode,
        extra,
        &graph.text,
        note,
    ] {
        hash.update(&part.len().to_be_bytes()).update(part.as_bytes());
    }
    hash.update(&params.encode_to_vec());
    hash.finalize().to_hex().to_string()
}
/// The state of a workflow, for whoever wants to save over exactly that.
pub(super) fn etag(row: &Model) -> String {
    short_hash(&format!("{}/{}", row.workflow_key, row.revision))
}
fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}
fn tags_text(tags: &[String]) -> String {
    serde_json::Value::from(tags.to_vec()).to_string()
}
fn read_tags(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}
/// What filters look through: each tag between marks, then name and description.
fn search_text(name: &str, description: &str, tags: &[String]) -> String {
    let mut text = String::from(MARK);
    for tag in tags {
        text.push_str(tag);
        text.push(MARK);
    }
    text.push_str(name);
    text.push('\n');
    text.extend(description.chars().filter(|c| *c != MARK));
    text.to_lowercase()
}
fn contains(text: &str) -> LikeExpr {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    LikeExpr::new(format!("%{escaped}%")).escape('\\')
}
/// How many rows a page shall have.
///
/// # Errors
/// The size is negative.
pub(super) fn page_limit(size: i32) -> Result<u64, Error> {
    match u64::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) => Ok(size.min(MAX_PAGE)),
        Err(_) => Err(Error::InvalidField {
            field: "page_size",
            wrong: "must not be negative".to_owned(),
        }),
    }
}
/// The token after a row of a list with these filters.
pub(super) fn write_token(at: i64, key: &str, filter: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{at}|{key}|{}", short_hash(filter)))
}
/// The row that a token stands for.
///
/// # Errors
/// It is not of this list.
pub(super) fn read_token(token: &str, filter: &str) -> Result<(i64, String), Error> {
    let text = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(Error::InvalidPageToken)?;
    let mut parts = text.split('|');
    match (
        parts.next().and_then(|at| at.parse().ok()),
        parts.next(),
        parts.next(),
    ) {
        (Some(at), Some(key), Some(hash)) if hash == short_hash(filter) => Ok((at, key.to_owned())),
        _ => Err(Error::InvalidPageToken),
    }
}
/// The message of a workflow; with a graph when there is one.
///
/// # Errors
/// The row is damaged.
pub fn to_proto(row: Model, graph: Option<String>) -> Result<Workflow, Error> {
    let etag = etag(&row);
    let Model {
        workflow_key: _,
        user_id: _,
        workflow_id,
        name,
        description,
        tags,
        search: _,
        settings,
        params,
        run_mode,
        extra,
        version,
        revision: _,
        node_count,
        created_at,
        updated_at,
        deleted_at: _,
        create_key: _,
        create_hash: _,
    } = row;
    Ok(Workflow {
        workflow_id,
        name,
        description,
        tags: read_tags(&tags),
        settings_json: settings,
        params: Some(MapValue::decode(params.as_slice()).map_err(|_| Error::DamagedLog)?),
        run_mode,
        extra_json: extra,
        version,
        etag,
        graph_json: graph,
        node_count,
        created_at: Some(time::proto_from_micros(created_at)),
        updated_at: Some(time::proto_from_micros(updated_at)),
    })
}
