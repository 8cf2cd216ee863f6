//! Which submission a request id and a charge belong to, and what the row costs in the end.

use atelier_proto::reason;
use atelier_proto::time::micros_from_proto;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is, ProviderStatus};
use tonic::Code;

use crate::stack::{Stack, User, amount, charge, charge_in, conflicts, fact, receipt, text_fact};

fn source(row: &v1::Generation) -> Option<&str> {
    row.price_source.as_deref()
}

fn queued(row: &v1::Generation) -> bool {
    let reconciliation = row.reconciliation.as_ref().unwrap();
    let due = reconciliation.next_at.as_ref().map(micros_from_proto);
    let settled = row.completed_at.as_ref().map(micros_from_proto);
    match reconciliation.state.as_str() {
        "queued" => {
            // A minute after the settling.
            assert_eq!(due.unwrap() - settled.unwrap(), 60_000_000);
            true
        }
        state => {
            assert_eq!((state, due), ("none", None));
            false
        }
    }
}

async fn closed(user: &User, request: v1::CloseGenerationRequest) -> v1::Generation {
    let closed = user.close_generation(request).await.unwrap();
    assert!(closed.changed);
    closed.generation.unwrap()
}

pub async fn g_026_a_receipt_in_two_parts_is_one_attempt(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let close = v1::CloseGenerationRequest {
        receipt: receipt(None, Some("0.42")),
        ..u1.to_complete(&id)
    };
    let row = closed(&u1, close).await;
    assert_eq!(row.attempts.len(), 1);
    let attempt = &row.attempts[0];
    assert_eq!(attempt.provider_request_id.as_deref(), Some("r1"));
    assert_eq!(amount(attempt.cost.as_ref()), Some("0.420000000"));
    assert_eq!(
        (amount(row.cost.as_ref()), source(&row)),
        (Some("0.420000000"), Some("provider"))
    );
    assert_eq!(row.facets.unwrap().provider(), ProviderStatus::Succeeded);
}

pub async fn g_027_concurrent_generations_keep_their_own_ids(stack: Stack) {
    let u1 = stack.user("u1");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200 {
        let u1 = u1.clone();
        tasks.spawn(async move {
            let request_id = format!("r{n}");
            let id = u1.bound(&request_id).await;
            u1.complete(&id).await.unwrap();
            (id, request_id)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (id, request_id) = done.unwrap();
        assert_eq!(u1.get(&id).await.provider_request_id, Some(request_id));
    }
}

pub async fn g_031_a_second_submission_is_a_second_attempt(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let refused = v1::Facets {
        provider: ProviderStatus::Failed.into(),
        ..Default::default()
    };
    u1.observe(&id, refused).await.unwrap();
    let second = v1::BindAttemptRequest {
        charge: Some(charge("0.04")),
        ..u1.to_bind(&id, "r2")
    };
    assert_eq!(u1.bind_attempt(second).await.unwrap().attempt_number, 2);
    let row = u1.get(&id).await;
    let kinds: Vec<_> = row.attempts.iter().map(|attempt| attempt.kind.as_str()).collect();
    assert_eq!(kinds, ["main", "retry"]);
    assert_eq!(row.attempts[0].provider(), ProviderStatus::Failed);
    // The row shows its latest attempt. What the first one cost is not known, so there is no sum.
    assert_eq!(row.facets.as_ref().unwrap().provider(), ProviderStatus::Queued);
    assert_eq!(
        (row.provider_request_id.as_deref(), row.cost.as_ref()),
        (Some("r2"), None)
    );
    let row = closed(&u1, u1.to_complete(&id)).await;
    assert_eq!(
        (amount(row.cost.as_ref()), source(&row)),
        (Some("0.040000000"), Some("model-catalog"))
    );
    assert!(queued(&row));
}

pub async fn g_032_two_charges_add_up(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    for (request_id, kind, cost) in [("r1", "preview", "0.42"), ("r2", "refine", "1.05")] {
        let bind = v1::BindAttemptRequest {
            charge: Some(charge(cost)),
            kind: Some(kind.into()),
            ..u1.to_bind(&id, request_id)
        };
        u1.bind_attempt(bind).await.unwrap();
    }
    let close = v1::CloseGenerationRequest {
        catalog_charge: Some(charge("9")),
        ..u1.to_complete(&id)
    };
    let row = closed(&u1, close).await;
    assert_eq!(
        (amount(row.cost.as_ref()), source(&row)),
        (Some("1.470000000"), Some("provider"))
    );
    let kinds: Vec<_> = row.attempts.iter().map(|attempt| attempt.kind.as_str()).collect();
    assert_eq!(kinds, ["preview", "refine"]);
    assert!(queued(&row));
    // Two currencies are no sum.
    let id = u1.submitted().await;
    for (request_id, currency) in [("r3", "USD"), ("r4", "EUR")] {
        let charge = Some(charge_in("1", currency));
        u1.bind_attempt(v1::BindAttemptRequest {
            charge,
            ..u1.to_bind(&id, request_id)
        })
        .await
        .unwrap();
    }
    let row = closed(&u1, u1.to_close(&id, Is::Failed)).await;
    assert_eq!(row.cost, None);
}

pub async fn g_033_an_amount_that_is_none_is_left_out(stack: Stack) {
    let u1 = stack.user("u1");
    for bad in ["NaN", "inf", "-1", "much", "100000000000000"] {
        let id = u1.bound("r1").await;
        let close = v1::CloseGenerationRequest {
            receipt: receipt(None, Some(bad)),
            ..u1.to_complete(&id)
        };
        let row = closed(&u1, close).await;
        assert_eq!(
            (amount(row.cost.as_ref()), source(&row)),
            (Some("0.040000000"), Some("model-catalog"))
        );
        assert!(fact(&row, "price_warnings").is_some(), "{bad}");
        assert_eq!(row.attempts[0].cost, None);
    }
}

pub async fn g_034_a_failure_keeps_its_request_id_and_waits_for_the_bill(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let close = v1::CloseGenerationRequest {
        receipt: receipt(Some("r1"), None),
        error: Some("exploded".into()),
        error_code: Some("PROVIDER_ERROR".into()),
        ..u1.to_close(&id, Is::Failed)
    };
    let row = closed(&u1, close).await;
    assert_eq!(
        (row.status(), row.error.as_deref()),
        (Is::Failed, Some("exploded"))
    );
    assert_eq!(row.provider_request_id.as_deref(), Some("r1"));
    assert_eq!(row.attempts[0].provider_request_id.as_deref(), Some("r1"));
    assert!(queued(&row) && row.cost.is_none() && !row.assets_known);
    // Without an id there is nothing to ask the provider for.
    let id = u1.submitted().await;
    assert!(!queued(&u1.fail(&id).await.unwrap().generation.unwrap()));
}

pub async fn g_036_zero_that_was_stated_is_a_price(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let close = v1::CloseGenerationRequest {
        receipt: receipt(None, Some("0")),
        ..u1.to_complete(&id)
    };
    let row = closed(&u1, close).await;
    assert_eq!(
        (amount(row.cost.as_ref()), source(&row)),
        (Some("0.000000000"), Some("provider"))
    );
    let total = u1.total().await;
    assert_eq!(
        (total.unpriced_count, total.costs[0].amount.as_str()),
        (0, "0.000000000")
    );
}

pub async fn g_057_unknown_is_not_zero(stack: Stack) {
    let u1 = stack.user("u1");
    let open = v1::OpenGenerationRequest {
        estimate: None,
        unpriced_reason: Some("not in the catalog".into()),
        ..u1.to_open()
    };
    let id = u1.opened(open).await.generation_id;
    u1.mark(&id).await.unwrap();
    let row = closed(&u1, u1.to_close(&id, Is::Completed)).await;
    assert_eq!(
        (row.cost.as_ref(), row.estimated_cost.as_ref(), source(&row)),
        (None, None, None)
    );
    assert_eq!(
        text_fact(&row, "unpriced_reason").as_deref(),
        Some("not in the catalog")
    );
    assert_eq!(u1.total().await.unpriced_count, 1);
    assert!(u1.total().await.costs.is_empty());
}

pub async fn g_058_the_receipt_beats_the_catalog_and_the_estimate_stays(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let close = v1::CloseGenerationRequest {
        receipt: receipt(Some("r1"), Some("0.42")),
        ..u1.to_complete(&id)
    };
    let row = closed(&u1, close).await;
    assert_eq!(amount(row.cost.as_ref()), Some("0.420000000"));
    assert_eq!(amount(row.estimated_cost.as_ref()), Some("0.040000000"));
    assert_eq!(text_fact(&row, "unpriced_reason"), None);
}

pub async fn g_059_the_catalog_does_not_price_what_failed(stack: Stack) {
    let u1 = stack.user("u1");
    for status in [Is::Failed, Is::Cancelled] {
        let id = u1.bound("r1").await;
        let close = v1::CloseGenerationRequest {
            catalog_charge: Some(charge("0.04")),
            ..u1.to_close(&id, status)
        };
        let row = closed(&u1, close).await;
        assert_eq!((row.status(), row.cost.as_ref()), (status, None));
        assert!(text_fact(&row, "unpriced_reason").is_some());
        // What the provider said itself counts all the same.
        let id = u1.bound("r2").await;
        let close = v1::CloseGenerationRequest {
            receipt: receipt(None, Some("0.03")),
            ..u1.to_close(&id, status)
        };
        let row = closed(&u1, close).await;
        assert_eq!(
            (amount(row.cost.as_ref()), source(&row)),
            (Some("0.030000000"), Some("provider"))
        );
    }
    assert_eq!(u1.total().await.costs[0].amount, "0.060000000");
}

pub async fn a_bind_that_is_repeated_changes_nothing(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    let bind = v1::BindAttemptRequest {
        resume_token: Some("{\"poll\":1}".into()),
        charge: Some(charge("0.1")),
        ..u1.to_bind(&id, "r1")
    };
    let first = u1.bind_attempt(bind.clone()).await.unwrap();
    let row = u1.get(&id).await;
    assert_eq!(u1.bind_attempt(bind).await.unwrap(), first);
    assert_eq!(u1.get(&id).await, row);
    assert_eq!(row.attempts[0].resume_token.as_deref(), Some("{\"poll\":1}"));
    assert_eq!(row.attempts[0].submission(), v1::SubmissionStatus::Submitted);
}

pub async fn a_settled_row_takes_no_other_request_id(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let row = u1.complete(&id).await.unwrap().generation.unwrap();
    crate::stack::refused(
        u1.bind(&id, "r2").await,
        Code::AlreadyExists,
        reason::ATTEMPT_BOUND,
    );
    assert_eq!(u1.bind(&id, "r1").await.unwrap().attempt_number, 1);
    assert_eq!(u1.get(&id).await, row);
    let annotate = v1::AnnotateGenerationRequest {
        generation_id: id.clone(),
        receipt: receipt(Some("r2"), None),
        ..Default::default()
    };
    let row = u1
        .annotate_generation(annotate)
        .await
        .unwrap()
        .generation
        .unwrap();
    assert_eq!(
        (row.provider_request_id.as_deref(), conflicts(&row)),
        (Some("r1"), 1)
    );
}

pub async fn a_weaker_source_does_not_replace_a_stronger_one(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.bound("r1").await;
    let open = u1.open().await;
    let annotate = |id: &str, cost: &str| v1::AnnotateGenerationRequest {
        generation_id: id.into(),
        receipt: receipt(None, Some(cost)),
        ..Default::default()
    };
    let early = u1.annotate_generation(annotate(&open, "1")).await;
    crate::stack::refused(early, Code::FailedPrecondition, reason::NOT_RUNNING);
    u1.complete(&id).await.unwrap();
    let row = u1
        .annotate_generation(annotate(&id, "0.42"))
        .await
        .unwrap()
        .generation
        .unwrap();
    assert_eq!(
        (amount(row.cost.as_ref()), source(&row)),
        (Some("0.420000000"), Some("provider"))
    );
    let again = u1
        .annotate_generation(annotate(&id, "0.42"))
        .await
        .unwrap()
        .generation
        .unwrap();
    assert_eq!(again, row);
    let other = u1
        .annotate_generation(annotate(&id, "0.50"))
        .await
        .unwrap()
        .generation
        .unwrap();
    assert_eq!(
        (amount(other.cost.as_ref()), conflicts(&other)),
        (Some("0.420000000"), 1)
    );
}

pub async fn g_030_of_a_call_inside_of_a_call_the_inner_one_carries_the_charge(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let inside = |user: &crate::stack::User, parent: &str| v1::OpenGenerationRequest {
        parent_generation_id: Some(parent.into()),
        ..user.to_open()
    };
    let outer = u1.submitted().await;
    let inner = u1.opened(inside(&u1, &outer)).await;
    assert_eq!(inner.parent_generation_id.as_deref(), Some(outer.as_str()));
    let inner = inner.generation_id;
    u1.mark(&inner).await.unwrap();
    let close = v1::CloseGenerationRequest {
        receipt: receipt(Some("r1"), Some("0.42")),
        ..u1.to_complete(&inner)
    };
    u1.close_generation(close).await.unwrap();
    // Its own catalog price would count the charge twice.
    u1.complete(&outer).await.unwrap();
    let row = u1.get(&outer).await;
    assert_eq!(amount(row.cost.as_ref()), Some("0.000000000"));
    assert_eq!(row.price_source.as_deref(), Some("provider"));
    assert_eq!(crate::stack::text_fact(&row, "delegated_to"), Some(inner));
    let total = u1.total().await;
    assert_eq!((total.call_count, total.unpriced_count), (2, 0));
    assert_eq!(total.costs[0].amount, "0.420000000");
    // What its own provider states for itself is its own.
    let outer = u1.submitted().await;
    u1.opened(inside(&u1, &outer)).await;
    let close = v1::CloseGenerationRequest {
        receipt: receipt(None, Some("0.01")),
        ..u1.to_complete(&outer)
    };
    u1.close_generation(close).await.unwrap();
    assert_eq!(amount(u1.get(&outer).await.cost.as_ref()), Some("0.010000000"));
    // Nobody nests in the call of somebody else, or in none.
    for parent in [outer.as_str(), &uuid::Uuid::now_v7().to_string(), "7"] {
        crate::stack::refused(
            u2.open_generation(inside(&u2, parent)).await,
            tonic::Code::InvalidArgument,
            atelier_proto::reason::INVALID_FIELD,
        );
    }
    assert!(u2.all().await.is_empty());
}
