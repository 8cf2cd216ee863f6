//! How the database finds what it is asked for: by index, and never by reading the ledger.

use std::time::Duration;

use atelier_proto::tracker::v1;
use atelier_tracker::costs::{self, Group};
use atelier_tracker::filter::Filter;
use atelier_tracker::queries;
use sea_orm::{ConnectionTrait, DbBackend, EntityTrait, QueryTrait, Select, Statement};

use crate::stack::{Stack, copies, in_job};

/// The steps of a statement's plan, a line each.
async fn plan<E: EntityTrait>(stack: &Stack, select: Select<E>) -> String {
    let backend = stack.db.backend();
    let (explain, column) = match backend {
        DbBackend::Postgres => ("EXPLAIN", "QUERY PLAN"),
        _ => ("EXPLAIN QUERY PLAN", "detail"),
    };
    let query = format!("{explain} {}", select.build(backend));
    let rows = stack
        .db
        .read()
        .query_all_raw(Statement::from_string(backend, query))
        .await
        .unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.try_get("", column).unwrap()).collect();
    steps.join("\n")
}

/// A ledger of which this user has a part, with statistics.
async fn filled(stack: &Stack) {
    for name in ["u1", "u2"] {
        let user = stack.user(name);
        let open = v1::OpenGenerationRequest {
            origin: in_job("j1", "n1"),
            ..user.to_open()
        };
        let id = user.opened(open).await.generation_id;
        user.mark(&id).await.unwrap();
        user.complete(&id).await.unwrap();
        copies(stack, &id, 10_000, |n, row| {
            row.provider = format!("p{}", n % 50);
            row.model = format!("m{}", n % 100);
            row.job_id = Some(format!("j{}", n % 200));
            row.thread_id = Some(format!("t{}", n % 200));
            row.project_id = Some(format!("p{}", n % 100));
            row.workflow_id = Some(format!("w{}", n % 100));
            row.created_at += i64::try_from(n).unwrap();
            row.background = n % 10 == 0;
        })
        .await;
    }
    let tx = stack.db.begin().await.unwrap();
    tx.execute_unprepared("ANALYZE").await.unwrap();
    tx.commit().await.unwrap();
}

fn of(change: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = Filter {
        user_id: "u1".into(),
        ..Default::default()
    };
    change(&mut filter);
    filter
}

fn read_whole(plan: &str) -> bool {
    plan.contains("Seq Scan on generations")
        || plan
            .lines()
            .any(|step| step.starts_with("SCAN") && !step.contains("INDEX"))
}

pub async fn pages_are_read_by_their_index(stack: Stack) {
    filled(&stack).await;
    let text = |text: &str| Some(text.to_owned());
    let cases: Vec<(&str, Filter)> = vec![
        ("generations_newest", of(|_| {})),
        ("generations_provider", of(|filter| filter.provider = text("p7"))),
        ("generations_model", of(|filter| filter.model = text("m7"))),
        ("generations_job", of(|filter| filter.job_id = text("j7"))),
        ("generations_thread", of(|filter| filter.thread_id = text("t7"))),
        ("generations_project", of(|filter| filter.project_id = text("p7"))),
        (
            "generations_workflow",
            of(|filter| filter.workflow_id = text("w7")),
        ),
        (
            "generations_",
            of(|filter| (filter.provider, filter.since) = (text("p7"), Some(1))),
        ),
        (
            "generations_",
            of(|filter| filter.capability = text("text_to_image")),
        ),
        ("generations_", of(|filter| filter.background = Some(true))),
    ];
    for (index, filter) in cases {
        for after in [None, Some((i64::MAX, uuid::Uuid::max()))] {
            let plan = plan(&stack, queries::page(&filter, after, 50)).await;
            assert!(plan.contains(index), "{filter:?}\n{plan}");
            assert!(!read_whole(&plan), "{filter:?}\n{plan}");
            // The index has the order: nothing is sorted, so a page costs a page.
            assert!(
                !plan.contains("TEMP B-TREE") && !plan.contains("Sort"),
                "{filter:?}\n{plan}"
            );
        }
    }
}

pub async fn sums_read_no_more_than_the_rows_of_their_filter(stack: Stack) {
    filled(&stack).await;
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        ("generations_provider", of(|filter| filter.provider = text("p7"))),
        ("generations_job", of(|filter| filter.job_id = text("j7"))),
        ("generations_project", of(|filter| filter.project_id = text("p7"))),
    ];
    for (index, filter) in cases {
        for group in [Group::Nothing, Group::Model, Group::Node, Group::Capability] {
            let plan = plan(&stack, costs::select(&filter, group, "")).await;
            assert!(
                plan.contains(index) && !read_whole(&plan),
                "{filter:?} {group:?}\n{plan}"
            );
        }
    }
}

pub async fn queues_are_read_by_their_index(stack: Stack) {
    filled(&stack).await;
    // Asked for again and again, so what it costs must not grow with the ledger: a sweep over a settled one is quick.
    let begun = std::time::Instant::now();
    for _ in 0..20 {
        stack.user("u1").sweep().await;
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let statement = atelier_tracker::budgets::due_statement(&stack.r1.time.sql());
    let backend = stack.db.backend();
    let explain = if backend == DbBackend::Postgres {
        "EXPLAIN"
    } else {
        "EXPLAIN QUERY PLAN"
    };
    let rows = stack
        .db
        .read()
        .query_all_raw(Statement::from_string(backend, format!("{explain} {statement}")))
        .await
        .unwrap();
    let column = if backend == DbBackend::Postgres {
        "QUERY PLAN"
    } else {
        "detail"
    };
    let steps: Vec<String> = rows.iter().map(|row| row.try_get("", column).unwrap()).collect();
    assert!(!read_whole(&steps.join("\n")), "{steps:?}");
}
