//! No sequence of calls by drivers, users and sweeps leaves an absorbing status, and every visible change is a version.

use atelier_proto::tracker::v1::{
    self, GenerationStatus as Is, OutputStatus, ProviderStatus, SubmissionStatus,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::stack::{Stack, User, charge, receipt};

#[derive(Debug, Clone)]
enum Step {
    Mark,
    Bind(u8, bool),
    Observe(i32, i32, i32),
    Close {
        status: i32,
        request: Option<u8>,
        cost: Option<u8>,
        assets: u8,
        evidence: bool,
        stale: bool,
    },
    Annotate {
        request: Option<u8>,
        cost: Option<u8>,
        assets: u8,
    },
    Link(u8),
    Cancel,
    ForeignCancel,
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let request = || proptest::option::of(0..3_u8);
    let cost = || proptest::option::of(0..5_u8);
    let close = (
        2..5_i32,
        request(),
        cost(),
        0..3_u8,
        any::<bool>(),
        proptest::bool::weighted(0.2),
    );
    prop_oneof![
        2 => Just(Step::Mark),
        2 => (0..3_u8, any::<bool>()).prop_map(|(id, priced)| Step::Bind(id, priced)),
        2 => (0..5, 0..6, 0..7).prop_map(|(submission, provider, output)| Step::Observe(submission, provider, output)),
        4 => close.prop_map(|(status, request, cost, assets, evidence, stale)| {
            Step::Close { status, request, cost, assets, evidence, stale }
        }),
        1 => (request(), cost(), 0..3_u8).prop_map(|(request, cost, assets)| Step::Annotate { request, cost, assets }),
        1 => (0..3_u8).prop_map(Step::Link),
        1 => Just(Step::Cancel),
        1 => Just(Step::ForeignCancel),
        1 => Just(Step::Sweep),
    ]
}

async fn take(step: &Step, id: &str, owner: &User, other: &User) {
    let named = |n: &Option<u8>| n.map(|n| format!("r{n}"));
    let priced = |n: &Option<u8>| n.map(|n| format!("0.0{n}"));
    let assets = |n: &u8| (0..*n).map(|n| format!("a{n}")).collect::<Vec<_>>();
    // What is refused is refused; only what it leaves behind matters here.
    match step {
        Step::Mark => drop(owner.mark(id).await),
        Step::Bind(request, priced) => {
            let charge = priced.then(|| charge("0.07"));
            let bind = v1::BindAttemptRequest {
                charge,
                ..owner.to_bind(id, &format!("r{request}"))
            };
            drop(owner.bind_attempt(bind).await);
        }
        Step::Observe(submission, provider, output) => {
            let facets = v1::Facets {
                submission: *submission,
                provider: *provider,
                output: *output,
            };
            drop(owner.observe(id, facets).await);
        }
        Step::Close {
            status,
            request,
            cost,
            assets: stored,
            evidence,
            stale,
        } => {
            let by = if *stale {
                owner.driven_by("stale")
            } else {
                owner.clone()
            };
            let close = v1::CloseGenerationRequest {
                status: *status,
                receipt: receipt(named(request).as_deref(), priced(cost).as_deref()),
                asset_ids: assets(stored),
                evidence: *evidence,
                ..by.to_complete(id)
            };
            drop(by.close_generation(close).await);
        }
        Step::Annotate {
            request,
            cost,
            assets: stored,
        } => {
            let annotate = v1::AnnotateGenerationRequest {
                generation_id: id.to_owned(),
                receipt: receipt(named(request).as_deref(), priced(cost).as_deref()),
                asset_ids: assets(stored),
                provider_cancel: None,
            };
            drop(owner.annotate_generation(annotate).await);
        }
        Step::Link(stored) => {
            let link = v1::LinkAssetsRequest {
                generation_id: id.to_owned(),
                asset_ids: assets(stored),
            };
            owner.link_assets(link).await.unwrap();
        }
        Step::Cancel => drop(owner.cancel(id).await),
        Step::ForeignCancel => assert!(!other.cancel(id).await.cancelled),
        Step::Sweep => drop(owner.sweep().await),
    }
}

fn rank(row: &v1::Generation) -> (i32, i32) {
    let facets = row.facets.as_ref().unwrap();
    let output = match facets.output() {
        OutputStatus::Unspecified | OutputStatus::Pending => 0,
        OutputStatus::Saving => 1,
        OutputStatus::Retrying => 2,
        OutputStatus::Ready | OutputStatus::Unavailable | OutputStatus::None => 3,
    };
    let sent = match facets.submission() {
        SubmissionStatus::Unspecified | SubmissionStatus::Accepted | SubmissionStatus::Submitting => 0,
        SubmissionStatus::Unknown => 1,
        SubmissionStatus::Submitted => 2,
    };
    (output, sent)
}

fn check(before: &v1::Generation, after: &v1::Generation, step: &Step) {
    if before != after {
        assert!(after.version > before.version, "{step:?}");
    } else {
        assert_eq!(after.version, before.version, "{step:?}");
    }
    let allowed = match before.status() {
        Is::Running => true,
        Is::Interrupted => after.status() != Is::Running,
        settled => after.status() == settled && after.completed_at == before.completed_at,
    };
    assert!(
        allowed,
        "{step:?}: {:?} became {:?}",
        before.status(),
        after.status()
    );
    assert_eq!((after.status() == Is::Running), after.completed_at.is_none());
    assert_eq!(after.estimated_cost, before.estimated_cost);
    assert_eq!(after.cost.is_some(), after.price_source.is_some());
    assert!(
        rank(after) >= (rank(before).0, 0) && rank(after).1 >= rank(before).1,
        "{step:?}"
    );
    if before.status() != Is::Running {
        // A settled row loses nothing: no asset, no price, no request id.
        assert!(
            before
                .asset_ids
                .iter()
                .all(|asset| after.asset_ids.contains(asset)),
            "{step:?}"
        );
        assert!(before.cost.is_none() || after.cost.is_some(), "{step:?}");
        assert!(
            before.provider_request_id.is_none() || after.provider_request_id.is_some(),
            "{step:?}"
        );
    }
    assert!(before.attempts.len() <= after.attempts.len());
    if after
        .attempts
        .iter()
        .any(|attempt| attempt.provider_request_id.is_some())
        && after.status() != Is::Running
    {
        assert_eq!(after.reconciliation.as_ref().unwrap().state, "queued", "{step:?}");
    }
}

pub async fn no_sequence_leaves_an_absorbing_status(stack: Stack) {
    let (owner, other) = (stack.user("u1"), stack.user("u2"));
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::default()
    });
    let sequences = proptest::collection::vec(step(), 1..20);
    for _ in 0..60 {
        let steps = sequences.new_tree(&mut runner).unwrap().current();
        let id = owner.open().await;
        let mut before = owner.get(&id).await;
        for step in &steps {
            take(step, &id, &owner, &other).await;
            let after = owner.get(&id).await;
            check(&before, &after, step);
            before = after;
        }
    }
}

pub async fn a_change_of_an_attempt_is_a_version_of_its_row(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.open().await;
    let facets = |provider: ProviderStatus| v1::Facets {
        provider: provider.into(),
        ..Default::default()
    };
    // The row moves before it has an attempt; its first one catches up later.
    u1.observe(&id, facets(ProviderStatus::Running)).await.unwrap();
    u1.mark(&id).await.unwrap();
    let before = u1.get(&id).await;
    u1.observe(&id, facets(ProviderStatus::Queued)).await.unwrap();
    let after = u1.get(&id).await;
    assert_ne!(before.attempts, after.attempts);
    assert!(after.version > before.version);
    assert_eq!(before.facets, after.facets);
}
