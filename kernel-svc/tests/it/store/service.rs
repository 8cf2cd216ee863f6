//! `JobService` of the whole component.

use atelier_common::testkit::engines;
use atelier_kernel::settings::Settings;
use atelier_proto::{
    kernel::v1::{
        CancelJobRequest, CheckGraphRequest, GetJobRequest, JobStatus, ListJobsRequest, RunJobRequest,
        WatchJobRequest, job_event::Event as Frame,
    },
    value::{Map, Value},
};
use serde_json::json;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{
    fakes::Provider,
    kernel::{Up, each, node, shout},
    scene::{encoded, image, seqs},
};

async fn kernels() -> Vec<(Up, atelier_common::testkit::TestDb)> {
    let mut kernels = Vec::new();
    for db in engines().await {
        let provider = Provider::new((&image(b"sea")).into(), true);
        kernels.push((Up::new(&db, Settings::default(), provider).await, db));
    }
    kernels
}
fn reason(status: &Status) -> String {
    status
        .get_details_error_info()
        .map(|info| info.reason)
        .unwrap_or_default()
}

#[tokio::test]
async fn a_run_is_started_watched_and_read() {
    for (up, db) in kernels().await {
        let (job, created) = up.run("j", &shout("hello")).await.unwrap();
        assert!(created && job.status() == JobStatus::Queued, "{}", db.engine());
        let (_, events) = up.watch("j", 0, false).await;
        assert_eq!(
            seqs(&events),
            (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>()
        );
        let Some(Frame::JobUpdate(end)) = &events.last().unwrap().event else {
            panic!("no end")
        };
        assert_eq!(end.status(), JobStatus::Completed);
        let job = up.get("j").await;
        assert_eq!(job.status(), JobStatus::Completed);
        let outputs = Map::try_from(job.outputs.clone().unwrap()).unwrap();
        assert_eq!(outputs["loud"], Value::list(vec!["HELLO".into()]));
        assert_eq!(
            job.graph_json.as_deref(),
            Some(shout("hello").to_string().as_str())
        );
        assert_eq!(job.last_seq, i64::try_from(events.len()).unwrap());
        assert!(job.started_at.is_some() && job.finished_at.is_some() && job.duration.is_some());
        let (started, again) = up.watch("j", 0, true).await;
        assert_eq!(encoded(&again), encoded(&events));
        let counted = (
            started.status(),
            started.last_seq,
            started.replay_count,
            started.replay_incomplete,
        );
        assert_eq!(counted, (JobStatus::Completed, job.last_seq, job.last_seq, false));
    }
}
#[tokio::test]
async fn w_060_a_job_id_names_one_request() {
    for (up, db) in kernels().await {
        assert!(up.run("j", &shout("hello")).await.unwrap().1);
        let ended = up.end("j").await;
        let (again, created) = up.run("j", &shout("hello")).await.unwrap();
        assert!(!created, "{}", db.engine());
        assert_eq!(
            (again.status(), again.last_seq),
            (JobStatus::Completed, ended.last_seq)
        );
        let other = up.run("j", &shout("other")).await.unwrap_err();
        assert_eq!(
            (other.code(), reason(&other).as_str()),
            (Code::AlreadyExists, "JOB_ID_USED")
        );
        let listed = up
            .client()
            .list_jobs(up.signed(ListJobsRequest::default()))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(listed.jobs.len(), 1);
        assert!(listed.jobs[0].graph_json.is_none() && listed.next_page_token.is_empty());
    }
}
#[tokio::test]
async fn what_belongs_to_others_is_told_from_nothing_by_no_byte() {
    for (up, db) in kernels().await {
        up.run("j", &shout("hello")).await.unwrap();
        up.end("j").await;
        let job_id = "j".to_owned();
        let theirs = [
            up.client()
                .get_job(up.by(
                    "2",
                    GetJobRequest {
                        job_id: job_id.clone(),
                    },
                ))
                .await
                .unwrap_err(),
            up.client()
                .cancel_job(up.by(
                    "2",
                    CancelJobRequest {
                        job_id: job_id.clone(),
                    },
                ))
                .await
                .unwrap_err(),
            up.client()
                .watch_job(up.by(
                    "2",
                    WatchJobRequest {
                        job_id,
                        ..WatchJobRequest::default()
                    },
                ))
                .await
                .unwrap_err(),
        ];
        let job_id = "k".to_owned();
        let missing = [
            up.client()
                .get_job(up.by(
                    "2",
                    GetJobRequest {
                        job_id: job_id.clone(),
                    },
                ))
                .await
                .unwrap_err(),
            up.client()
                .cancel_job(up.by(
                    "2",
                    CancelJobRequest {
                        job_id: job_id.clone(),
                    },
                ))
                .await
                .unwrap_err(),
            up.client()
                .watch_job(up.by(
                    "2",
                    WatchJobRequest {
                        job_id,
                        ..WatchJobRequest::default()
                    },
                ))
                .await
                .unwrap_err(),
        ];
        for (foreign, missing) in theirs.iter().zip(&missing) {
            assert_eq!(foreign.code(), Code::NotFound, "{}", db.engine());
            // Ids of equal length that differ in one letter.
            let with_k = |text: &str| text.replace("job j ", "job k ");
            assert_eq!(with_k(foreign.message()), missing.message());
            let bytes = |details: &[u8]| String::from_utf8_lossy(details).replace("job j ", "job k ");
            let details = bytes(foreign.details()).replace("job_id\u{12}\u{1}j", "job_id\u{12}\u{1}k");
            assert_eq!(details, bytes(missing.details()));
        }
        let (own, created) = {
            let graph_json = Some(shout("mine").to_string());
            let request = RunJobRequest {
                job_id: "j".to_owned(),
                graph_json,
                ..RunJobRequest::default()
            };
            let answer = up
                .client()
                .run_job(up.by("2", request))
                .await
                .unwrap()
                .into_inner();
            (answer.job.unwrap(), answer.created)
        };
        assert!(created && own.job_id == "j");
    }
}
#[tokio::test]
async fn bad_requests_are_refused_by_field() {
    for (up, _db) in kernels().await {
        up.run("j", &shout("hello")).await.unwrap();
        let watch = WatchJobRequest {
            job_id: "j".to_owned(),
            after_seq: -1,
            replay_only: true,
        };
        let refused = up.client().watch_job(up.signed(watch)).await.unwrap_err();
        assert_eq!(
            (refused.code(), reason(&refused).as_str()),
            (Code::InvalidArgument, "INVALID_FIELD")
        );
        assert_eq!(
            refused.get_details_bad_request().unwrap().field_violations[0].field,
            "after_seq"
        );
        for (graph_json, job_id, code) in [
            (Some("nonsense".to_owned()), "a", "MALFORMED_GRAPH"),
            (Some("[]".to_owned()), "a", "MALFORMED_GRAPH"),
            (None, "a", "INVALID_FIELD"),
            (Some(shout("x").to_string()), "a\nb", "INVALID_FIELD"),
        ] {
            let request = RunJobRequest {
                job_id: job_id.to_owned(),
                graph_json,
                ..RunJobRequest::default()
            };
            let refused = up.client().run_job(up.signed(request)).await.unwrap_err();
            assert_eq!(
                (refused.code(), reason(&refused).as_str()),
                (Code::InvalidArgument, code)
            );
        }
        let unsigned = up
            .client()
            .get_job(GetJobRequest {
                job_id: "j".to_owned(),
            })
            .await
            .unwrap_err();
        assert_eq!(unsigned.code(), Code::Unauthenticated);
    }
}
#[tokio::test]
async fn a_wrong_graph_is_told_by_the_check_and_by_the_run() {
    for (up, db) in kernels().await {
        let graph = json!({"nodes": [node("x", "no.such.Node", json!({}))], "edges": []});
        let request = CheckGraphRequest {
            graph_json: graph.to_string(),
            params: None,
        };
        let issues = up
            .client()
            .check_graph(up.signed(request))
            .await
            .unwrap()
            .into_inner()
            .issues;
        assert_eq!((issues.len(), issues[0].node_id.as_str()), (1, "x"), "{issues:?}");
        up.run("j", &graph).await.unwrap();
        let job = up.end("j").await;
        assert_eq!(
            (job.status(), job.error_code.as_deref()),
            (JobStatus::Failed, Some("INVALID_INPUT"))
        );
        assert_eq!(job.issues, issues, "{}", db.engine());
        let good = CheckGraphRequest {
            graph_json: shout("x").to_string(),
            params: None,
        };
        assert!(
            up.client()
                .check_graph(up.signed(good))
                .await
                .unwrap()
                .into_inner()
                .issues
                .is_empty()
        );
    }
}
#[tokio::test]
async fn cancelling_what_has_ended_changes_nothing() {
    for (up, db) in kernels().await {
        up.run("j", &shout("hello")).await.unwrap();
        let before = up.end("j").await;
        let request = CancelJobRequest {
            job_id: "j".to_owned(),
        };
        let answer = up
            .client()
            .cancel_job(up.signed(request))
            .await
            .unwrap()
            .into_inner();
        assert!(!answer.cancelled, "{}", db.engine());
        assert_eq!(answer.job.unwrap().status(), JobStatus::Completed);
        assert_eq!(up.get("j").await, before);
    }
}
#[tokio::test]
async fn w_086_a_picture_of_a_provider_is_saved_and_named_in_the_result() {
    for (up, db) in kernels().await {
        up.run("j", &super::kernel::paint()).await.unwrap();
        let job = up.end("j").await;
        assert_eq!(
            (job.status(), job.artifact_count > 0),
            (JobStatus::Completed, true),
            "{job:?}"
        );
        assert_eq!(
            (up.provider.calls(), up.assets.saved()),
            (1, vec![("paint".to_owned(), 0)]),
            "{}",
            db.engine()
        );
        let outputs = Map::try_from(job.outputs.unwrap()).unwrap();
        let picture = &outputs["picture"].as_list().unwrap()[0];
        let picture = picture.as_media().unwrap();
        assert_eq!(
            (picture.asset_id.as_deref(), &picture.data),
            (Some("asset-paint-0-0"), &None)
        );
    }
}
#[tokio::test]
async fn k_244_20_000_events_are_read_in_pieces_by_cursor() {
    for (up, db) in kernels().await {
        up.run("j", &each(5_000)).await.unwrap();
        let (_, live) = up.watch("j", 0, false).await;
        assert!(
            live.len() >= 20_000 || db.engine() == "postgres",
            "only {} events",
            live.len()
        );
        assert_eq!(up.get("j").await.status(), JobStatus::Completed);
        let all = i64::try_from(live.len()).unwrap();
        assert_eq!(seqs(&live), (1..=all).collect::<Vec<_>>());
        let (mut cursor, mut read) = (0, Vec::new());
        while cursor < all {
            let request = WatchJobRequest {
                job_id: "j".to_owned(),
                after_seq: cursor,
                replay_only: true,
            };
            let mut stream = up
                .client()
                .watch_job(up.signed(request))
                .await
                .unwrap()
                .into_inner();
            // One start and at most 3 000 events, then the client goes away.
            for _ in 0..3_001 {
                let Some(message) = stream.message().await.unwrap() else {
                    break;
                };
                if let Some(atelier_proto::kernel::v1::watch_job_response::Message::Event(event)) =
                    message.message
                {
                    cursor = event.seq;
                    read.push(event);
                }
            }
        }
        assert!(encoded(&read) == encoded(&live), "{}", db.engine());
    }
}
