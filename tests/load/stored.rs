//! Through kernel-svc's gRPC stream, with log and journal on SQLite with full sync, beside what the same storage takes of
//! bare rows that are committed in groups.

use std::time::Instant;

use anyhow::{Context, ensure};
use atelier_common::{
    channel::Transport,
    db::{Db, DbError, DbSettings, GroupCommit},
    identity::{Caller, Signer},
    tasks::Tasks,
};
use atelier_proto::{
    MAX_MESSAGE_BYTES,
    kernel::v1::{
        JobStatus, RunJobRequest, WatchJobRequest, job_event::Event, job_service_client::JobServiceClient,
        watch_job_response::Message,
    },
};
use atelier_tests::TestStack;
use futures_util::FutureExt;
use sea_orm::{ConnectionTrait, Statement};
use tokio::task::JoinSet;

use crate::{full, per, rate, seconds, socket::fan_out, status_mib};

/// Callers at once.
const CALLERS: usize = 128;
/// Rows of one group at most, as in the service.
const GROUP: usize = 512;
/// Bytes that a row holds.
const PAYLOAD: usize = 200;

/// Rows a second that the storage takes in groups.
async fn bare_rows() -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("bare.db").display());
    let db = Db::connect(&url, &DbSettings::default()).await?;
    let table = "CREATE TABLE rows (job TEXT NOT NULL, n INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (job, n))";
    let tx = db.begin().await?;
    tx.execute_unprepared(table).await?;
    tx.commit().await?;
    let tasks = Tasks::new();
    let commits: GroupCommit<(String, i64), (), DbError> =
        GroupCommit::new(db, &tasks, "bare", GROUP, |tx, rows: Vec<(String, i64)>| {
            async move {
                let done = rows.iter().map(|_| ()).collect();
                for (job, n) in rows {
                    let values = [job.into(), n.into(), vec![7_u8; PAYLOAD].into()];
                    let insert = "INSERT INTO rows (job, n, payload) VALUES (?, ?, ?)";
                    tx.execute_raw(Statement::from_sql_and_values(
                        sea_orm::DbBackend::Sqlite,
                        insert,
                        values,
                    ))
                    .await?;
                }
                Ok(done)
            }
            .boxed()
        });
    let mut callers = JoinSet::new();
    let start = Instant::now();
    for caller in 0..CALLERS {
        let commits = commits.clone();
        callers.spawn(async move {
            let mut count = 0_usize;
            while start.elapsed() < seconds() {
                let row = (format!("job-{caller}"), i64::try_from(count)?);
                commits.submit(row).await?;
                count += 1;
            }
            anyhow::Ok(count)
        });
    }
    let mut rows = 0;
    while let Some(done) = callers.join_next().await {
        rows += done??;
    }
    Ok(rate(rows, start.elapsed()))
}

/// A caller of kernel-svc.
#[derive(Clone)]
struct Client {
    jobs: JobServiceClient<Transport>,
    signer: Signer,
}
impl Client {
    fn new(stack: &TestStack) -> anyhow::Result<Self> {
        Ok(Self {
            jobs: JobServiceClient::new(stack.stack()?.peers().get("kernel")?)
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            signer: stack.stack()?.signer().clone(),
        })
    }
    /// Runs a graph and watches it to its end; its events.
    async fn run(&mut self, job_id: String, graph_json: &str) -> anyhow::Result<usize> {
        let caller = Caller::new("1", ["*"]);
        let request = RunJobRequest {
            job_id: job_id.clone(),
            graph_json: Some(graph_json.to_owned()),
            ..RunJobRequest::default()
        };
        self.jobs.run_job(self.signer.request(request, &caller)).await?;
        self.watch(job_id).await
    }
    async fn watch(&mut self, job_id: String) -> anyhow::Result<usize> {
        let watch = WatchJobRequest {
            job_id,
            ..WatchJobRequest::default()
        };
        let caller = Caller::new("1", ["*"]);
        let answer = self.jobs.watch_job(self.signer.request(watch, &caller)).await?;
        let (mut stream, mut events, mut last) = (answer.into_inner(), 0, None);
        while let Some(message) = stream.message().await? {
            if let Some(Message::Event(event)) = message.message {
                events += 1;
                ensure!(event.seq == events, "event {} came as number {events}", event.seq);
                if let Some(Event::JobUpdate(update)) = event.event {
                    last = Some(update.status());
                }
            }
        }
        ensure!(last == Some(JobStatus::Completed), "the run is {last:?}");
        Ok(usize::try_from(events)?)
    }
}

/// Jobs at once, each with a list of items: executions and events a second.
async fn jobs_at_once(client: &Client, jobs: usize, items: usize) -> anyhow::Result<(f64, f64)> {
    let graph = fan_out(items).to_string();
    let mut running = JoinSet::new();
    let start = Instant::now();
    let round = uuid::Uuid::now_v7();
    for job in 0..jobs {
        let (mut client, graph) = (client.clone(), graph.clone());
        running.spawn(async move { client.run(format!("{round}-{job}"), &graph).await });
    }
    let mut events = 0;
    while let Some(done) = running.join_next().await {
        events += done??;
    }
    let took = start.elapsed();
    Ok((rate(jobs * (items + 3), took), rate(events, took)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bench_runs_through_grpc_with_log_and_journal() -> anyhow::Result<()> {
    // The limits of one user are not what is measured.
    let stack = TestStack::with(&[
        ("kernel.max_concurrent_jobs", "10000"),
        ("kernel.max_queued_jobs", "10000"),
    ])
    .await?;
    let client = Client::new(&stack)?;
    println!("| what | a second |\n|---|---|");
    let rows = bare_rows().await?;
    println!("| bare rows in groups, {CALLERS} callers | {rows:.0} |");
    let shapes = if full() {
        vec![
            (1, 10_000),
            (1, 100_000),
            (16, 1_000),
            (128, 100),
            (128, 1_000),
            (1_000, 10),
        ]
    } else {
        vec![(1, 1_000), (16, 10)]
    };
    for (jobs, items) in shapes {
        let (executions, events) = jobs_at_once(&client, jobs, items).await?;
        println!(
            "| {jobs} jobs with a list of {items}: executions ({events:.0} events) | {executions:.0}, {:.2} of the rows |",
            executions / rows
        );
    }
    stack.stop().await;
    Ok(())
}

/// A log that grows long: neither appending to it nor reading it again may become slower.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bench_a_long_log() -> anyhow::Result<()> {
    let stack = TestStack::start().await?;
    let mut client = Client::new(&stack)?;
    println!(
        "| a job with | took | for one event | all of its log once more | for one | resident, all services |"
    );
    println!("|---|---|---|---|---|---|");
    let sizes: &[usize] = if full() {
        &[1_000, 10_000, 100_000, 500_000]
    } else {
        &[1_000]
    };
    for items in sizes {
        let graph = fan_out(*items).to_string();
        let start = Instant::now();
        let events = client.run(format!("long-{items}"), &graph).await?;
        let took = start.elapsed();
        let start = Instant::now();
        let replayed = client.watch(format!("long-{items}")).await?;
        let again = start.elapsed();
        ensure!(replayed == events, "{replayed} of {events} events are in the log");
        let resident = status_mib("self", "VmRSS:").context("no figure")?;
        println!(
            "| {events} events | {took:.1?} | {:.2} µs | {again:.1?} | {:.2} µs | {resident} MiB |",
            per(took, events),
            per(again, events)
        );
    }
    stack.stop().await;
    Ok(())
}
