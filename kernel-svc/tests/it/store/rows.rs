//! Rows of runs.

use atelier_common::{clock::Clock, identity::Caller, testkit::engines};
use atelier_kernel::{error::Error, jobs::Store, migration::Migrator};
use atelier_proto::kernel::v1::{JobStatus, ListJobsRequest};

use super::scene::record;

async fn stores() -> Vec<(Store, atelier_common::testkit::TestDb)> {
    let mut stores = Vec::new();
    for db in engines().await {
        db.migrate::<Migrator>().await.unwrap();
        // A clock that stands still: all rows are equally old.
        let clock = Clock::manual("2026-11-30T12:00:00Z".parse().unwrap());
        stores.push((Store::new(db.db().clone(), clock), db));
    }
    stores
}
fn user(id: &str) -> Caller {
    Caller::new(id, ["*"])
}

#[tokio::test]
async fn w_060_the_same_request_again_is_the_same_run() {
    for (store, db) in stores().await {
        let me = user("1");
        let (first, created) = record(&store, &me, "j", "{}").await.unwrap();
        let (again, created_again) = record(&store, &me, "j", "{}").await.unwrap();
        assert!(created && !created_again, "{}", db.engine());
        assert_eq!(first, again);
        let other = record(&store, &me, "j", r#"{"nodes":[]}"#).await;
        assert!(matches!(other, Err(Error::JobIdUsed(id)) if id == "j"));
        assert_eq!(store.get(&me, "j").await.unwrap(), first);
    }
}
#[tokio::test]
async fn of_requests_at_once_one_records_the_run_and_the_others_find_it() {
    for (store, db) in stores().await {
        let me = user("1");
        let asked = (0..16).map(|_| record(&store, &me, "j", "{}"));
        let answers = futures_util::future::try_join_all(asked).await.unwrap();
        assert_eq!(
            answers.iter().filter(|(_, created)| *created).count(),
            1,
            "{}",
            db.engine()
        );
        assert!(answers.iter().all(|(row, _)| row.job_key == answers[0].0.job_key));
    }
}
#[tokio::test]
async fn two_users_may_use_one_job_id_and_do_not_see_each_other() {
    for (store, db) in stores().await {
        let (mine, yours) = (user("1"), user("2"));
        let (a, _) = record(&store, &mine, "j", "{}").await.unwrap();
        let (b, created) = record(&store, &yours, "j", r#"{"other":1}"#).await.unwrap();
        assert!(created && a.job_key != b.job_key, "{}", db.engine());
        record(&store, &mine, "only-mine", "{}").await.unwrap();
        assert_eq!(store.get(&yours, "j").await.unwrap().job_key, b.job_key);
        let foreign = store.get(&yours, "only-mine").await.unwrap_err();
        assert!(matches!(foreign, Error::JobNotFound(id) if id == "only-mine"));
        let listed = store
            .list(&yours, &ListJobsRequest::default())
            .await
            .unwrap()
            .rows;
        assert_eq!(
            listed.iter().map(|row| row.job_key.as_str()).collect::<Vec<_>>(),
            [b.job_key.as_str()]
        );
    }
}
#[tokio::test]
async fn pages_hold_each_run_once_though_all_are_equally_old() {
    for (store, db) in stores().await {
        let me = user("1");
        for number in 0..25 {
            record(&store, &me, &format!("j{number}"), "{}").await.unwrap();
        }
        let (mut ids, mut sizes, mut page_token) = (Vec::new(), Vec::new(), String::new());
        loop {
            let request = ListJobsRequest {
                page_size: 10,
                page_token,
                ..ListJobsRequest::default()
            };
            let page = store.list(&me, &request).await.unwrap();
            sizes.push(page.rows.len());
            ids.extend(page.rows.into_iter().map(|row| row.job_id));
            page_token = page.next;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(sizes, [10, 10, 5], "{}", db.engine());
        let newest_first: Vec<_> = (0..25).rev().map(|number| format!("j{number}")).collect();
        assert_eq!(ids, newest_first);
        let all = ListJobsRequest {
            page_size: 25,
            ..ListJobsRequest::default()
        };
        assert!(
            store.list(&me, &all).await.unwrap().next.is_empty(),
            "a full last page has no next one"
        );
    }
}
#[tokio::test]
async fn a_token_belongs_to_its_list_and_filters_are_checked() {
    for (store, _db) in stores().await {
        let me = user("1");
        for number in 0..3 {
            record(&store, &me, &format!("j{number}"), "{}").await.unwrap();
        }
        let list = |request: ListJobsRequest| {
            let (store, me) = (&store, &me);
            async move { store.list(me, &request).await }
        };
        let first = ListJobsRequest {
            page_size: 1,
            ..ListJobsRequest::default()
        };
        let token = list(first.clone()).await.unwrap().next;
        let with = |page_token: &str| ListJobsRequest {
            page_token: page_token.to_owned(),
            ..first.clone()
        };
        assert_eq!(list(with(&token)).await.unwrap().rows[0].job_id, "j1");
        let queued = Some(JobStatus::Queued.into());
        for request in [
            ListJobsRequest {
                status: queued,
                ..with(&token)
            },
            ListJobsRequest {
                workflow_id: Some("w".to_owned()),
                ..with(&token)
            },
            with("nonsense"),
            with("!"),
            with("YXxifGM"),
        ] {
            assert!(matches!(list(request).await, Err(Error::InvalidPageToken)));
        }
        for request in [
            ListJobsRequest {
                page_size: -1,
                ..first.clone()
            },
            ListJobsRequest {
                status: Some(0),
                ..first.clone()
            },
            ListJobsRequest {
                status: Some(77),
                ..first.clone()
            },
        ] {
            assert!(matches!(list(request).await, Err(Error::InvalidField { .. })));
        }
        let status = |status: JobStatus| ListJobsRequest {
            status: Some(status.into()),
            ..ListJobsRequest::default()
        };
        assert_eq!(list(status(JobStatus::Queued)).await.unwrap().rows.len(), 3);
        assert!(list(status(JobStatus::Running)).await.unwrap().rows.is_empty());
    }
}
#[tokio::test]
async fn the_first_wish_to_cancel_counts() {
    for (store, db) in stores().await {
        let (row, _) = record(&store, &user("1"), "j", "{}").await.unwrap();
        assert!(store.note_cancel(&row.job_key).await.unwrap(), "{}", db.engine());
        assert!(!store.note_cancel(&row.job_key).await.unwrap());
        assert!(!store.note_cancel("missing").await.unwrap());
    }
}
