//! Lists and look-ups.

use atelier_proto::common::v1::{Origin, Surface};
use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationFilter, GenerationStatus as Is};
use tonic::Code;
use uuid::Uuid;

use crate::stack::{Answer, Stack, User, copies, in_job, refused};

async fn page(
    user: &User,
    filter: GenerationFilter,
    size: i32,
    token: &str,
) -> Answer<v1::ListGenerationsResponse> {
    let request = v1::ListGenerationsRequest {
        filter: Some(filter),
        page_size: size,
        page_token: token.to_owned(),
    };
    user.list_generations(request).await
}

fn ids(page: &v1::ListGenerationsResponse) -> Vec<String> {
    page.generations
        .iter()
        .map(|row| row.generation_id.clone())
        .collect()
}

pub async fn g_131_rows_of_one_instant_are_paged_without_gap_or_repeat(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.submitted().await;
    copies(&stack, &id, 119, |_, _| {}).await;
    let mut seen = Vec::new();
    let mut sizes = Vec::new();
    let mut token = String::new();
    loop {
        let page = page(&u1, GenerationFilter::default(), 50, &token).await.unwrap();
        sizes.push(page.generations.len());
        seen.extend(ids(&page));
        // Rows that come in between do not disturb the later pages.
        u1.open().await;
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    let mut sorted = seen.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 120);
    sorted.reverse();
    assert_eq!(seen, sorted);
}

pub async fn g_132_page_sizes_are_clamped(stack: Stack) {
    let u1 = stack.user("u1");
    let id = u1.open().await;
    copies(&stack, &id, 599, |_, _| {}).await;
    for (asked, given) in [(0, 50), (1, 1), (500, 500), (501, 500), (i32::MAX, 500)] {
        let page = page(&u1, GenerationFilter::default(), asked, "").await.unwrap();
        assert_eq!(
            (page.generations.len(), page.next_page_token.is_empty()),
            (given, false)
        );
    }
    refused(
        page(&u1, GenerationFilter::default(), -1, "").await,
        Code::InvalidArgument,
        reason::INVALID_FIELD,
    );
}

pub async fn g_133_tokens_of_other_lists_are_refused(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    for _ in 0..3 {
        u1.open().await;
        u2.open().await;
    }
    let filter = GenerationFilter {
        provider: Some("acme".into()),
        ..Default::default()
    };
    let token = page(&u1, filter.clone(), 1, "").await.unwrap().next_page_token;
    assert_eq!(
        page(&u1, filter.clone(), 2, &token)
            .await
            .unwrap()
            .generations
            .len(),
        2
    );
    let refused = |answer| refused(answer, Code::InvalidArgument, reason::INVALID_PAGE_TOKEN);
    refused(page(&u1, GenerationFilter::default(), 1, &token).await);
    refused(page(&u2, filter.clone(), 1, &token).await);
    refused(page(&u1, filter.clone(), 1, "nonsense").await);
    for place in 0..token.len() {
        let mut edited = token.clone().into_bytes();
        edited[place] = if edited[place] == b'A' { b'B' } else { b'A' };
        let edited = String::from_utf8(edited).unwrap();
        assert!(page(&u1, filter.clone(), 1, &edited).await.is_err(), "{place}");
    }
    refused(page(&u1, filter, 1, &token[..token.len() - 2]).await);
}

pub async fn g_134_foreign_and_missing_look_the_same(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let foreign = u1.submitted().await;
    let missing = Uuid::now_v7().to_string();
    let told = |answer: Answer<v1::Generation>| {
        let status = refused(answer, Code::NotFound, reason::GENERATION_NOT_FOUND);
        (status.message().to_owned(), status.details().to_vec())
    };
    let first = told(u2.find(&foreign).await);
    for id in [missing.as_str(), &foreign[..13], "nothing", "", "%%%%%%%%%%"] {
        assert_eq!(told(u2.find(id).await), first, "{id}");
    }
}

pub async fn g_135_nobody_sees_rows_of_others(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    u1.submitted().await;
    let own = u2.submitted().await;
    let filter = GenerationFilter {
        status: Some(Is::Running.into()),
        ..Default::default()
    };
    let page = page(&u2, filter, 0, "").await.unwrap();
    assert_eq!(ids(&page), [own]);
    assert_eq!(u2.total().await.running_count, 1);
}

pub async fn filters_are_joined(stack: Stack) {
    let u1 = stack.user("u1");
    let mut opened = Vec::new();
    for n in 0..8 {
        let odd = |n: i32| if n % 2 == 0 { "even" } else { "odd" }.to_owned();
        let origin = Origin {
            workflow_id: Some(odd(n / 2)),
            thread_id: (n == 5).then(|| "t5".to_owned()),
            ..in_job(&odd(n), &odd(n / 4)).unwrap()
        };
        let open = v1::OpenGenerationRequest {
            provider: odd(n),
            model: odd(n / 2),
            capability: odd(n / 4),
            origin: Some(origin),
            ..u1.to_open()
        };
        opened.push(u1.opened(open).await);
    }
    u1.mark(&opened[6].generation_id).await.unwrap();
    u1.complete(&opened[6].generation_id).await.unwrap();
    let even = Some("even".to_owned());
    let all = GenerationFilter::default;
    let cases: Vec<(GenerationFilter, Vec<usize>)> = vec![
        (
            GenerationFilter {
                provider: even.clone(),
                ..all()
            },
            vec![6, 4, 2, 0],
        ),
        (
            GenerationFilter {
                provider: even.clone(),
                model: even.clone(),
                ..all()
            },
            vec![4, 0],
        ),
        (
            GenerationFilter {
                capability: even.clone(),
                job_id: even.clone(),
                ..all()
            },
            vec![2, 0],
        ),
        (
            GenerationFilter {
                node_id: even.clone(),
                workflow_id: even.clone(),
                ..all()
            },
            vec![1, 0],
        ),
        (
            GenerationFilter {
                thread_id: Some("t5".into()),
                ..all()
            },
            vec![5],
        ),
        (
            GenerationFilter {
                surface: Some(Surface::Chat.into()),
                ..all()
            },
            vec![5],
        ),
        (
            GenerationFilter {
                status: Some(Is::Completed.into()),
                ..all()
            },
            vec![6],
        ),
        (
            GenerationFilter {
                provider: Some("none".into()),
                ..all()
            },
            vec![],
        ),
        (
            GenerationFilter {
                since: opened[6].created_at,
                ..all()
            },
            vec![7, 6],
        ),
        (
            GenerationFilter {
                until: opened[2].created_at,
                ..all()
            },
            vec![1, 0],
        ),
    ];
    for (filter, expected) in cases {
        let page = page(&u1, filter.clone(), 0, "").await.unwrap();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|n| opened[n].generation_id.clone())
            .collect();
        assert_eq!(ids(&page), expected, "{filter:?}");
    }
    for bad in [
        GenerationFilter {
            status: Some(0),
            ..all()
        },
        GenerationFilter {
            status: Some(77),
            ..all()
        },
        GenerationFilter {
            surface: Some(0),
            ..all()
        },
    ] {
        refused(
            page(&u1, bad, 0, "").await,
            Code::InvalidArgument,
            reason::INVALID_FIELD,
        );
    }
}

pub async fn a_prefix_finds_a_row_when_it_is_unique(stack: Stack) {
    let u1 = stack.user("u1");
    let ids = [
        "0199c2f0-6a11-7c3e-9b52-5d1f0c7a9e01",
        "0199c2f0-6b11-7c3e-9b52-5d1f0c7a9e01",
    ];
    for id in ids {
        u1.opened(v1::OpenGenerationRequest {
            generation_id: id.into(),
            ..u1.to_open()
        })
        .await;
    }
    for prefix in [
        "0199c2f0-6a",
        "0199C2F0-6A11-7C3E",
        "0199c2f0-6a11-7c3e-9b52-5d1f0c7a9e0",
    ] {
        assert_eq!(u1.get(prefix).await.generation_id, ids[0]);
    }
    assert_eq!(u1.get(&ids[1].replace('-', "")).await.generation_id, ids[1]);
    refused(
        u1.find("0199c2f0").await,
        Code::InvalidArgument,
        reason::AMBIGUOUS_ID,
    );
    refused(
        u1.find("0199c2f").await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
    refused(
        stack.user("u2").find("0199c2f0-6a").await,
        Code::NotFound,
        reason::GENERATION_NOT_FOUND,
    );
}

pub async fn further_filters_are_joined(stack: Stack) {
    let u1 = stack.user("u1");
    let mut opened = Vec::new();
    for n in 0..4 {
        let origin = Origin {
            project_id: (n % 2 == 0).then(|| "p1".to_owned()),
            ..Default::default()
        };
        let open = v1::OpenGenerationRequest {
            origin: Some(origin),
            background: n == 1,
            ..u1.to_open()
        };
        opened.push(u1.opened(open).await.generation_id);
    }
    u1.mark(&opened[2]).await.unwrap();
    u1.bind(&opened[2], "r1").await.unwrap();
    u1.complete(&opened[2]).await.unwrap();
    let all = GenerationFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (
            GenerationFilter {
                project_id: text("p1"),
                ..all()
            },
            vec![2, 0],
        ),
        (
            GenerationFilter {
                project_id: text(""),
                ..all()
            },
            vec![3, 1],
        ),
        (
            GenerationFilter {
                project_id: text("p2"),
                ..all()
            },
            vec![],
        ),
        (
            GenerationFilter {
                background: Some(true),
                ..all()
            },
            vec![1],
        ),
        (
            GenerationFilter {
                background: Some(false),
                ..all()
            },
            vec![3, 2, 0],
        ),
        (
            GenerationFilter {
                has_cost: Some(true),
                ..all()
            },
            vec![2],
        ),
        (
            GenerationFilter {
                has_cost: Some(false),
                project_id: text("p1"),
                ..all()
            },
            vec![0],
        ),
        (
            GenerationFilter {
                reconcile_state: text("queued"),
                ..all()
            },
            vec![2],
        ),
        (
            GenerationFilter {
                reconcile_state: text("none"),
                ..all()
            },
            vec![3, 1, 0],
        ),
    ];
    for (filter, expected) in cases {
        let page = page(&u1, filter.clone(), 0, "").await.unwrap();
        let expected: Vec<_> = expected.into_iter().map(|n: usize| opened[n].clone()).collect();
        assert_eq!(ids(&page), expected, "{filter:?}");
    }
    let bad = GenerationFilter {
        reconcile_state: text("perhaps"),
        ..all()
    };
    refused(
        page(&u1, bad, 0, "").await,
        Code::InvalidArgument,
        reason::INVALID_FIELD,
    );
}

pub async fn g_136_rows_are_looked_up_by_the_ids_of_their_clients(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let open = |user: &User, request_id: &str| v1::OpenGenerationRequest {
        origin: Some(Origin {
            request_id: Some(request_id.into()),
            ..Default::default()
        }),
        ..user.to_open()
    };
    for n in 0..97 {
        u1.opened(open(&u1, &format!("q{n}"))).await;
    }
    u2.opened(open(&u2, "q98")).await;
    let lookup = async |count: usize| {
        let request_ids = (0..count).map(|n| format!("q{n}")).collect();
        u1.lookup_generations(v1::LookupGenerationsRequest { request_ids })
            .await
    };
    let found = lookup(100).await.unwrap();
    assert_eq!(found.generations.len(), 97);
    assert_eq!(found.unmatched, ["q97", "q98", "q99"]);
    refused(lookup(101).await, Code::InvalidArgument, reason::INVALID_FIELD);
    let nothing = lookup(0).await.unwrap();
    assert!(nothing.generations.is_empty() && nothing.unmatched.is_empty());
}
