//! Records of saved workflows: made once, read scoped by their owner. Changes of them are in `save.rs`.

use atelier_common::{clock::Clock, db::Db, identity::Caller};
use atelier_proto::kernel::v1::{CreateWorkflowRequest, ListWorkflowsRequest};
use prost::Message;
use sea_orm::{
    ActiveValue::Set, ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select, sea_query::OnConflict,
};

use super::{
    draft::{self, Draft, Graph},
    rows::{MARK, contains, fingerprint, page_limit, read_token, search_text, tags_text, write_token},
    versions,
};
use crate::{
    entity::workflows::{ActiveModel, Column, Entity, Model},
    error::Error,
};

/// Workflows of one user at most.
const MAX_WORKFLOWS: u64 = 10_000;
/// Bytes of a page at most, but for a page of one row: a page is one message.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
/// Longest text to look for, in bytes.
const MAX_QUERY: usize = 500;

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
            // The first part is for the index, which makes no range of the second one.
            query = query.filter(Column::CreatedAt.lte(at)).filter(
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
        let found = rows.len();
        let mut bytes = 0;
        let fit = rows.iter().take_while(|row| {
            bytes += row.description.len() + row.settings.len() + row.params.len() + row.extra.len();
            bytes <= MAX_PAGE_BYTES
        });
        let fit = fit.count().max(1);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX).min(fit));
        let more = found > rows.len();
        let next = rows
            .last()
            .filter(|_| more)
            .map(|row| write_token(row.created_at, &row.workflow_key, &filter))
            .unwrap_or_default();
        Ok(Page { rows, next })
    }
}
fn of(caller: &Caller) -> Select<Entity> {
    all_even_deleted(caller).filter(Column::DeletedAt.is_null())
}
fn all_even_deleted(caller: &Caller) -> Select<Entity> {
    Entity::find().filter(Column::UserId.eq(&caller.user_id))
}
