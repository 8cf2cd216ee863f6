//! Rows of runs: written once when a run is asked for, read scoped by their owner.

use atelier_common::{clock::Clock, db::Db, identity::Caller};
use atelier_proto::{
    common::v1::MapValue,
    kernel::v1::{Issue, Job, JobStatus, ListJobsRequest, RunOptions, TriggerEvent},
    time,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use prost::Message;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, EntityTrait, Iterable, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::{Expr, OnConflict},
};

use super::status_of;
use crate::{
    entity::jobs::{ActiveModel, Column, Entity, Model},
    error::Error,
};

/// Rows on a page when none is asked for.
const DEFAULT_PAGE: u64 = 50;
/// Rows on a page at most.
const MAX_PAGE: u64 = 500;
/// Bytes of a page at most, but for a page of one row: a page is one message.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// Reads and writes rows of runs.
#[derive(Clone)]
pub struct Store {
    db: Db,
    clock: Clock,
}
/// A run to record.
pub struct NewJob<'a> {
    /// The id that its client knows.
    pub job_id: &'a str,
    /// The workflow it belongs to.
    pub workflow_id: Option<&'a str>,
    /// Name shown in lists.
    pub name: &'a str,
    /// The graph, JSON.
    pub graph: &'a str,
    /// Its parameters.
    pub params: &'a MapValue,
    /// Its options.
    pub options: &'a RunOptions,
    /// The event that starts it.
    pub trigger: Option<&'a TriggerEvent>,
    /// The instance that is to drive it.
    pub owner: &'a str,
    /// Until when, in microseconds.
    pub lease_until: i64,
    /// The version of the saved workflow that the graph is of.
    pub workflow_version: Option<i64>,
    /// What was asked for instead of graph and parameters, to tell a repeat from another request.
    pub asked: Option<&'a str>,
    /// The run whose node starts it.
    pub parent: Option<&'a Parent>,
}
/// The run whose node starts another one.
#[derive(Debug, Clone)]
pub struct Parent {
    /// The run.
    pub job_id: String,
    /// The node.
    pub node_id: String,
    /// How many runs the new one is inside of.
    pub depth: i64,
}
impl NewJob<'_> {
    fn fingerprint(&self) -> String {
        let mut hash = blake3::Hasher::new();
        let (graph, params) = match self.asked {
            Some(asked) => (asked, Vec::new()),
            None => (self.graph, self.params.encode_to_vec()),
        };
        for part in [graph.as_bytes(), &params, &self.options.encode_to_vec()] {
            hash.update(&part.len().to_be_bytes()).update(part);
        }
        hash.update(self.workflow_id.unwrap_or_default().as_bytes());
        if let Some(trigger) = self.trigger {
            hash.update(&trigger.encode_to_vec());
        }
        hash.finalize().to_hex().to_string()
    }
}
/// A page of runs.
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
    /// The database.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }
    /// Microseconds since the epoch.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.clock.now().timestamp_micros()
    }
    /// Records a run, or finds the one that has the id: the row, and whether it was recorded by this call.
    ///
    /// # Errors
    /// [`Error::JobIdUsed`] when the id belongs to another request; store errors.
    pub async fn insert(&self, caller: &Caller, new: NewJob<'_>) -> Result<(Model, bool), Error> {
        let fingerprint = new.fingerprint();
        let row = ActiveModel {
            job_key: Set(uuid::Uuid::now_v7().to_string()),
            user_id: Set(caller.user_id.clone()),
            job_id: Set(new.job_id.to_owned()),
            workflow_id: Set(new.workflow_id.map(ToOwned::to_owned)),
            name: Set(new.name.to_owned()),
            status: Set("queued".to_owned()),
            error: Set(None),
            error_code: Set(None),
            issues: Set(None),
            fingerprint: Set(fingerprint.clone()),
            graph: Set(new.graph.to_owned()),
            params: Set(new.params.encode_to_vec()),
            options: Set(new.options.encode_to_vec()),
            outputs: Set(None),
            created_at: Set(self.now()),
            started_at: Set(None),
            finished_at: Set(None),
            last_seq: Set(0),
            artifact_count: Set(0),
            owner: Set(Some(new.owner.to_owned())),
            lease_until: Set(new.lease_until),
            cancel_requested_at: Set(None),
            trigger_event: Set(new.trigger.map(Message::encode_to_vec)),
            suspension: Set(None),
            resume_at: Set(None),
            resume: Set(None),
            adoptions: Set(0),
            adopted_artifacts: Set(0),
            workflow_version: Set(new.workflow_version),
            parent_job_id: Set(new.parent.map(|parent| parent.job_id.clone())),
            parent_node_id: Set(new.parent.map(|parent| parent.node_id.clone())),
            depth: Set(new.parent.map_or(0, |parent| parent.depth)),
        };
        // One statement decides between callers that come at once; whoever loses reads the winner's row.
        let conflict = OnConflict::columns([Column::UserId, Column::JobId])
            .do_nothing()
            .to_owned();
        let tx = self.db.begin().await?;
        let inserted = Entity::insert(row)
            .on_conflict(conflict)
            .exec_without_returning(&*tx)
            .await?
            == 1;
        let row = by_id(caller, new.job_id).one(&*tx).await?;
        tx.commit().await?;
        let row = row.ok_or_else(|| Error::JobNotFound(new.job_id.to_owned()))?;
        if inserted {
            Ok((row, true))
        } else {
            Ok((same_request(row, &fingerprint)?, false))
        }
    }
    /// The run that a request asked for before.
    ///
    /// # Errors
    /// As [`Store::insert`].
    pub async fn find_repeated(&self, caller: &Caller, new: &NewJob<'_>) -> Result<Option<Model>, Error> {
        let row = by_id(caller, new.job_id).one(self.db.read()).await?;
        row.map(|row| same_request(row, &new.fingerprint())).transpose()
    }
    /// One run of the caller.
    ///
    /// # Errors
    /// [`Error::JobNotFound`], the same for foreign and missing; store errors.
    pub async fn get(&self, caller: &Caller, job_id: &str) -> Result<Model, Error> {
        by_id(caller, job_id)
            .one(self.db.read())
            .await?
            .ok_or_else(|| Error::JobNotFound(job_id.to_owned()))
    }
    /// A page of the caller's runs, newest first.
    ///
    /// # Errors
    /// A bad page size, token or status; store errors.
    pub async fn list(&self, caller: &Caller, request: &ListJobsRequest) -> Result<Page, Error> {
        let limit = match u64::try_from(request.page_size) {
            Ok(0) => DEFAULT_PAGE,
            Ok(size) => size.min(MAX_PAGE),
            Err(_) => {
                return Err(Error::InvalidField {
                    field: "page_size",
                    wrong: "must not be negative".to_owned(),
                });
            }
        };
        let mut query = Entity::find().filter(Column::UserId.eq(&caller.user_id));
        let status = request.status.map(asked_status).transpose()?;
        if let Some(status) = status {
            query = query.filter(Column::Status.eq(status));
        }
        if let Some(workflow) = &request.workflow_id {
            query = query.filter(Column::WorkflowId.eq(workflow));
        }
        let filter = format!("{status:?}/{:?}", request.workflow_id);
        if !request.page_token.is_empty() {
            let (at, key) = read_token(&request.page_token, &filter)?;
            // The first part is for the index, which makes no range of the second one.
            query = query.filter(Column::CreatedAt.lte(at)).filter(
                Condition::any().add(Column::CreatedAt.lt(at)).add(
                    Condition::all()
                        .add(Column::CreatedAt.eq(at))
                        .add(Column::JobKey.lt(key)),
                ),
            );
        }
        // Graphs are large, and no list shows them.
        let mut rows = query
            .select_only()
            .columns(Column::iter().filter(|column| !matches!(column, Column::Graph)))
            .expr_as(Expr::cust("''"), "graph")
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::JobKey)
            .limit(limit + 1)
            .into_model::<Model>()
            .all(self.db.read())
            .await?;
        let found = rows.len();
        let mut bytes = 0;
        let fit = rows.iter().take_while(|row| {
            bytes += row.params.len() + row.outputs.as_ref().map_or(0, Vec::len);
            bytes += row.issues.as_ref().map_or(0, String::len);
            bytes <= MAX_PAGE_BYTES
        });
        let fit = fit.count().max(1);
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX).min(fit));
        let more = found > rows.len();
        let next = rows
            .last()
            .filter(|_| more)
            .map(|row| write_token(row, &filter))
            .unwrap_or_default();
        Ok(Page { rows, next })
    }
    /// Whether a run has ended, or is gone.
    ///
    /// # Errors
    /// Store errors.
    pub async fn ended(&self, job_key: &str) -> Result<bool, Error> {
        let status: Option<String> = Entity::find_by_id(job_key)
            .select_only()
            .column(Column::Status)
            .into_tuple()
            .one(self.db.read())
            .await?;
        Ok(status.is_none_or(|status| super::is_terminal(&status)))
    }
    /// Notes that somebody asked to cancel a run that goes on; the first one counts: whether it was this one.
    ///
    /// # Errors
    /// Store errors.
    pub async fn note_cancel(&self, job_key: &str) -> Result<bool, Error> {
        let tx = self.db.begin().await?;
        let noted = Entity::update_many()
            .col_expr(Column::CancelRequestedAt, Expr::value(self.now()))
            .filter(Column::JobKey.eq(job_key))
            .filter(Column::CancelRequestedAt.is_null())
            .filter(Column::Status.is_in(["queued", "running"]))
            .exec(&*tx)
            .await?
            .rows_affected
            == 1;
        tx.commit().await?;
        Ok(noted)
    }
}
fn by_id(caller: &Caller, job_id: &str) -> Select<Entity> {
    Entity::find()
        .filter(Column::UserId.eq(&caller.user_id))
        .filter(Column::JobId.eq(job_id))
}
fn same_request(row: Model, fingerprint: &str) -> Result<Model, Error> {
    if row.fingerprint == fingerprint {
        Ok(row)
    } else {
        Err(Error::JobIdUsed(row.job_id))
    }
}
fn asked_status(status: i32) -> Result<&'static str, Error> {
    match JobStatus::try_from(status) {
        Ok(JobStatus::Unspecified) | Err(_) => Err(Error::InvalidField {
            field: "status",
            wrong: "is not a status of a run".to_owned(),
        }),
        Ok(status) => Ok(super::status_name(status)),
    }
}
fn write_token(row: &Model, filter: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!(
        "{}|{}|{}",
        row.created_at,
        row.job_key,
        short_hash(filter)
    ))
}
fn read_token(token: &str, filter: &str) -> Result<(i64, String), Error> {
    let text = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or(Error::InvalidPageToken)?;
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
fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}

/// The message of a row; the graph only when asked for.
///
/// # Errors
/// The row is damaged.
pub fn to_proto(row: Model, with_graph: bool) -> Result<Job, Error> {
    let decode = |bytes: Vec<u8>| MapValue::decode(bytes.as_slice()).map_err(|_| Error::DamagedLog);
    let Model {
        job_key: _,
        user_id: _,
        job_id,
        workflow_id,
        name,
        status,
        error,
        error_code,
        issues,
        fingerprint: _,
        graph,
        params,
        options: _,
        outputs,
        created_at,
        started_at,
        finished_at,
        last_seq,
        artifact_count,
        owner: _,
        lease_until: _,
        cancel_requested_at: _,
        trigger_event: _,
        suspension: _,
        resume_at: _,
        resume: _,
        adoptions: _,
        adopted_artifacts: _,
        workflow_version,
        parent_job_id,
        parent_node_id,
        depth: _,
    } = row;
    let duration = finished_at
        .zip(started_at)
        .and_then(|(end, start)| u64::try_from(end - start).ok())
        .map(|micros| time::proto_duration(std::time::Duration::from_micros(micros)));
    Ok(Job {
        job_id,
        workflow_id,
        name,
        status: status_of(&status).into(),
        error,
        error_code,
        params: Some(decode(params)?),
        outputs: outputs.map(decode).transpose()?.map(result_outputs),
        created_at: Some(time::proto_from_micros(created_at)),
        started_at: started_at.map(time::proto_from_micros),
        finished_at: finished_at.map(time::proto_from_micros),
        duration,
        last_seq,
        graph_json: with_graph.then_some(graph),
        issues: issues.as_deref().map(read_issues).unwrap_or_default(),
        artifact_count,
        workflow_version,
        parent_job_id,
        parent_node_id,
    })
}
/// The row holds the whole result; its `outputs` are what callers ask for.
fn result_outputs(result: MapValue) -> MapValue {
    let outputs = result
        .entries
        .into_iter()
        .find(|entry| entry.key == "outputs")
        .and_then(|entry| entry.value);
    match outputs.and_then(|value| value.kind) {
        Some(atelier_proto::common::v1::value::Kind::MapValue(map)) => map,
        _ => MapValue::default(),
    }
}
fn read_issues(json: &str) -> Vec<Issue> {
    let values: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    let text = |value: &serde_json::Value, key: &str| {
        value
            .get(key)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    values
        .iter()
        .map(|value| Issue {
            code: text(value, "code"),
            node_id: text(value, "node_id"),
            node_type: text(value, "node_type"),
            property: text(value, "property"),
            message: text(value, "message"),
        })
        .collect()
}
