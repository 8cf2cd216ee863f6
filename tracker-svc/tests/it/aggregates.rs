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
        pending: vec![usd("0.040000000")],
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
        ..Default::default()
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

pub async fn g_139_days_are_cut_in_the_zone_that_is_asked_for(stack: Stack) {
    let u1 = stack.user("u1");
    let id = settled(&u1, u1.to_open(), Is::Completed, Some(charge("0.01"))).await;
    // Around midnight of both sides of a change of the clocks, by the database's own reckoning of instants.
    let instants = [
        "2026-03-28T22:30:00Z",
        "2026-03-28T23:30:00Z",
        "2026-03-29T21:30:00Z",
        "2026-03-29T22:30:00Z",
        "2026-01-15T23:30:00Z",
        "2026-07-15T22:30:00Z",
    ];
    let micros: Vec<i64> = instants
        .iter()
        .map(|at| {
            at.parse::<chrono::DateTime<chrono::Utc>>()
                .unwrap()
                .timestamp_micros()
        })
        .collect();
    copies(&stack, &id, instants.len(), |n, row| {
        (row.created_at, row.completed_at) = (micros[n], Some(micros[n]));
        row.project_id = Some("p1".into());
    })
    .await;
    let days = async |zone: &str, since: Option<i64>| {
        let filter = v1::GenerationFilter {
            project_id: Some("p1".into()),
            since: since.map(atelier_proto::time::proto_from_micros),
            ..Default::default()
        };
        let request = v1::SummarizeCostsRequest {
            filter: Some(filter),
            group: CostGroup::Day.into(),
            time_zone: zone.into(),
            ..Default::default()
        };
        let mut days: Vec<_> = u1
            .summarize_costs(request)
            .await
            .unwrap()
            .groups
            .into_iter()
            .map(|day| (day.key, day.call_count))
            .collect();
        days.sort();
        days
    };
    let told = |days: &[(&str, i64)]| {
        days.iter()
            .map(|(day, n)| ((*day).to_owned(), *n))
            .collect::<Vec<_>>()
    };
    let berlin = [
        ("2026-01-16", 1),
        ("2026-03-28", 1),
        ("2026-03-29", 2),
        ("2026-03-30", 1),
        ("2026-07-16", 1),
    ];
    assert_eq!(days("Europe/Berlin", None).await, told(&berlin));
    assert_eq!(days("Europe/Berlin", Some(micros[0])).await, told(&berlin[1..]));
    let utc = [
        ("2026-01-15", 1),
        ("2026-03-28", 2),
        ("2026-03-29", 2),
        ("2026-07-15", 1),
    ];
    assert_eq!(days("", None).await, told(&utc));
    let kolkata = [
        ("2026-01-16", 1),
        ("2026-03-29", 2),
        ("2026-03-30", 2),
        ("2026-07-16", 1),
    ];
    assert_eq!(days("Asia/Kolkata", None).await, told(&kolkata));
    let wrong = v1::SummarizeCostsRequest {
        group: CostGroup::Day.into(),
        time_zone: "Europe/Nowhere".into(),
        ..Default::default()
    };
    crate::stack::refused(
        u1.summarize_costs(wrong).await,
        tonic::Code::InvalidArgument,
        atelier_proto::reason::INVALID_FIELD,
    );
}

pub async fn projects_surfaces_and_users_are_groups(stack: Stack) {
    use atelier_proto::common::v1::{Origin, Surface};
    let (u1, u2, operator) = (stack.user("u1"), stack.user("u2"), stack.user("operator"));
    let open = |user: &User, project: Option<&str>, surface: Surface| v1::OpenGenerationRequest {
        origin: Some(Origin {
            project_id: project.map(Into::into),
            surface: surface.into(),
            ..Default::default()
        }),
        ..user.to_open()
    };
    settled(
        &u1,
        open(&u1, Some("p1"), Surface::Cli),
        Is::Completed,
        Some(charge("3")),
    )
    .await;
    settled(
        &u1,
        open(&u1, None, Surface::Cli),
        Is::Completed,
        Some(charge("2")),
    )
    .await;
    settled(
        &u2,
        open(&u2, Some("p1"), Surface::Chat),
        Is::Completed,
        Some(charge("1")),
    )
    .await;
    let keys = |report: v1::SummarizeCostsResponse| {
        let told = |group: v1::CostSummary| (group.key, group.costs[0].amount.clone());
        report.groups.into_iter().map(told).collect::<Vec<_>>()
    };
    let pair = |key: &str, amount: &str| (key.to_owned(), format!("{amount}.000000000"));
    assert_eq!(
        keys(u1.costs(CostGroup::Project).await),
        [pair("p1", "3"), pair("", "2")]
    );
    assert_eq!(keys(u1.costs(CostGroup::Surface).await), [pair("cli", "5")]);
    assert_eq!(keys(u1.costs(CostGroup::User).await), [pair("u1", "5")]);
    let everybody = |group: CostGroup| v1::SummarizeCostsRequest {
        group: group.into(),
        all_users: true,
        ..Default::default()
    };
    let all = operator
        .summarize_costs(everybody(CostGroup::User))
        .await
        .unwrap();
    assert_eq!(keys(all), [pair("u1", "5"), pair("u2", "1")]);
    crate::stack::refused(
        u1.summarize_costs(everybody(CostGroup::User)).await,
        tonic::Code::PermissionDenied,
        atelier_proto::reason::ADMIN_ONLY,
    );
}

pub async fn what_is_pending_is_told_apart(stack: Stack) {
    let u1 = stack.user("u1");
    settled(&u1, u1.to_open(), Is::Completed, Some(charge("1"))).await;
    u1.submitted().await;
    u1.submitted().await;
    let euro = v1::OpenGenerationRequest {
        estimate: Some(charge_in("5", "EUR")),
        ..u1.to_open()
    };
    u1.opened(euro).await;
    let unpriced = v1::OpenGenerationRequest {
        estimate: None,
        ..u1.to_open()
    };
    u1.opened(unpriced).await;
    let total = u1.total().await;
    assert_eq!(total.costs, [usd("1.000000000")]);
    let euro = Money {
        amount: "5.000000000".into(),
        currency: "EUR".into(),
    };
    assert_eq!(total.pending, [usd("0.080000000"), euro]);
    assert_eq!((total.call_count, total.running_count), (1, 4));
}
