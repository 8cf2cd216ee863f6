//! Sums and counts: exact, over any number of rows, open ones apart.

use atelier_proto::common::v1::Money;
use atelier_proto::tracker::v1::{self, CostGroup, GenerationStatus as Is};

use crate::stack::{Stack, User, charge, charge_in, copies, in_job, receipt};

fn usd(amount: &str) -> Money {
    Money {
        amount: amount.into(),
        currency: "USD".into(),
    }
}

async fn settled(
    user: &User,
    open: v1::OpenGenerationRequest,
    status: Is,
    cost: Option<v1::Charge>,
) -> String {
    let id = user.opened(open).await.generation_id;
    user.mark(&id).await.unwrap();
    let close = v1::CloseGenerationRequest {
        receipt: cost.map(|charge| v1::Receipt {
            charge: Some(charge),
            provider_request_id: None,
        }),
        ..user.to_close(&id, status)
    };
    assert!(user.close_generation(close).await.unwrap().changed);
    id
}

pub async fn g_061_tiny_amounts_add_up_exactly(stack: Stack) {
    let u1 = stack.user("u1");
    let id = settled(&u1, u1.to_open(), Is::Completed, Some(charge("0.000000150"))).await;
    copies(&stack, &id, 9_999, |_, _| {}).await;
    assert_eq!(u1.total().await.costs, [usd("0.001500000")]);
}

pub async fn g_062_currencies_are_not_merged(stack: Stack) {
    let u1 = stack.user("u1");
    for (amount, currency) in [
        ("1.00", "EUR"),
        ("1.00", "USD"),
        ("7", "CREDITS:acme"),
        ("2.5", "USD"),
    ] {
        settled(
            &u1,
            u1.to_open(),
            Is::Completed,
            Some(charge_in(amount, currency)),
        )
        .await;
    }
    let costs = u1.total().await.costs;
    let told: Vec<_> = costs
        .iter()
        .map(|money| (money.currency.as_str(), money.amount.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("USD", "3.500000000"),
            ("CREDITS:acme", "7.000000000"),
            ("EUR", "1.000000000")
        ]
    );
}

pub async fn g_137_what_counts_as_what(stack: Stack) {
    let u1 = stack.user("u1");
    settled(&u1, u1.to_open(), Is::Completed, Some(charge("2"))).await;
    settled(&u1, u1.to_open(), Is::Failed, Some(charge("0.5"))).await;
    u1.submitted().await;
    assert_eq!(u1.sweep().await, 1);
    u1.submitted().await;
    let expected = v1::CostSummary {
        key: String::new(),
        costs: vec![usd("2.500000000")],
        call_count: 3,
        completed_count: 1,
        failed_count: 1,
        cancelled_count: 0,
        interrupted_count: 1,
        unpriced_count: 1,
        unsent_count: 0,
        running_count: 1,
    };
    assert_eq!(u1.total().await, expected);
    let groups = u1.costs(CostGroup::Provider).await.groups;
    assert_eq!(
        groups,
        [v1::CostSummary {
            key: "acme".into(),
            ..expected
        }]
    );
    let nobody = stack.user("u2").costs(CostGroup::Provider).await;
    assert_eq!(
        (nobody.total, nobody.groups),
        (Some(v1::CostSummary::default()), vec![])
    );
}

pub async fn g_138_thirty_thousand_rows_are_summed_without_a_cap(stack: Stack) {
    let u1 = stack.user("u1");
    let id = settled(&u1, u1.to_open(), Is::Completed, Some(charge("0.01"))).await;
    copies(&stack, &id, 29_999, |n, row| row.model = format!("m{}", n % 3)).await;
    let report = u1.costs(CostGroup::Model).await;
    let total = report.total.unwrap();
    assert_eq!(
        (total.costs, total.call_count),
        (vec![usd("300.000000000")], 30_000)
    );
    assert_eq!(
        report.groups.iter().map(|group| group.call_count).sum::<i64>(),
        30_000
    );
}

pub async fn g_145_the_cost_of_a_job_is_the_sum_of_its_rows(stack: Stack) {
    let u1 = stack.user("u1");
    let open = || v1::OpenGenerationRequest {
        origin: in_job("j1", "n1"),
        ..u1.to_open()
    };
    for _ in 0..4 {
        let id = u1.opened(open()).await.generation_id;
        u1.mark(&id).await.unwrap();
        u1.complete(&id).await.unwrap();
    }
    settled(&u1, open(), Is::Completed, Some(charge("0.42"))).await;
    let failed = v1::CloseGenerationRequest {
        receipt: receipt(Some("r1"), Some("0.02")),
        ..u1.to_close(&u1.opened(open()).await.generation_id, Is::Failed)
    };
    u1.close_generation(failed).await.unwrap();
    settled(&u1, u1.to_open(), Is::Completed, Some(charge("9"))).await;
    let filter = v1::GenerationFilter {
        job_id: Some("j1".into()),
        ..Default::default()
    };
    let request = v1::SummarizeCostsRequest {
        filter: Some(filter),
        group: CostGroup::Node.into(),
    };
    for user in [u1.clone(), stack.user_of(&stack.replica().await, "u1")] {
        let report = user.summarize_costs(request.clone()).await.unwrap();
        assert_eq!(report.total.unwrap().costs, [usd("0.600000000")]);
        assert_eq!(
            report
                .groups
                .iter()
                .map(|group| group.key.as_str())
                .collect::<Vec<_>>(),
            ["n1"]
        );
    }
    let jobs = u1.costs(CostGroup::Job).await.groups;
    let told: Vec<_> = jobs
        .iter()
        .map(|job| (job.key.as_str(), job.costs[0].amount.as_str()))
        .collect();
    assert_eq!(told, [("", "9.000000000"), ("j1", "0.600000000")]);
}

pub async fn groups_have_their_keys_and_the_dearest_comes_first(stack: Stack) {
    let u1 = stack.user("u1");
    let open = |provider: &str, model: &str, node: &str| v1::OpenGenerationRequest {
        provider: provider.into(),
        model: model.into(),
        origin: in_job("j1", node),
        ..u1.to_open()
    };
    settled(
        &u1,
        open("sketch", "sketch-image", "n1"),
        Is::Completed,
        Some(charge("0.04")),
    )
    .await;
    settled(
        &u1,
        open("sketch", "sketch-text", "n2"),
        Is::Completed,
        Some(charge("0.5")),
    )
    .await;
    settled(&u1, open("acme", "m1", "n2"), Is::Completed, Some(charge("0.1"))).await;
    settled(
        &u1,
        open("acme", "m2", "n2"),
        Is::Completed,
        Some(charge_in("3", "EUR")),
    )
    .await;
    settled(&u1, open("zero", "m3", "n3"), Is::Failed, None).await;
    let keys = async |group| {
        let report = u1.costs(group).await;
        assert_eq!(report.total.unwrap().call_count, 5);
        report
            .groups
            .into_iter()
            .map(|group| group.key)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(CostGroup::Provider).await, ["sketch", "acme", "zero"]);
    let models = [
        "sketch/sketch-text",
        "acme/m1",
        "sketch/sketch-image",
        "acme/m2",
        "zero/m3",
    ];
    assert_eq!(keys(CostGroup::Model).await, models);
    assert_eq!(keys(CostGroup::Node).await, ["j1/n2", "j1/n1", "j1/n3"]);
    assert_eq!(keys(CostGroup::Capability).await, ["text_to_image"]);
    let day = keys(CostGroup::Day).await;
    assert!(
        day.iter().all(|day| day.len() == 10 && day.starts_with("20")),
        "{day:?}"
    );
    let id = u1.open().await;
    let before = 1_600_000_000_000_000;
    copies(&stack, &id, 1, |_, row| {
        (row.created_at, row.started_at) = (before, before)
    })
    .await;
    let days = u1.costs(CostGroup::Day).await.groups;
    let old = days.iter().find(|day| day.key == "2020-09-13").unwrap();
    assert_eq!((old.running_count, old.call_count), (1, 0));
    let wrong = v1::SummarizeCostsRequest {
        group: 99,
        ..Default::default()
    };
    let answer = u1.summarize_costs(wrong).await;
    crate::stack::refused(
        answer,
        tonic::Code::InvalidArgument,
        atelier_proto::reason::INVALID_FIELD,
    );
}

pub async fn huge_sums_do_not_overflow(stack: Stack) {
    let u1 = stack.user("u1");
    let id = settled(
        &u1,
        u1.to_open(),
        Is::Completed,
        Some(charge("9000000000.999999999")),
    )
    .await;
    copies(&stack, &id, 9, |_, _| {}).await;
    assert_eq!(u1.total().await.costs, [usd("90000000009.999999990")]);
}
