//! Opening rows, once per key.

use atelier_proto::common::v1::{Origin, Surface};
use atelier_proto::reason;
use atelier_proto::tracker::v1::{self, GenerationStatus as Is, SubmissionStatus};
use tonic::Code;
use uuid::Uuid;

use crate::stack::{Stack, amount, prompt, refused};

pub async fn a_row_is_told_back_as_it_was_opened(stack: Stack) {
    let u1 = stack.user("u1");
    let origin = Origin {
        surface: Surface::Unspecified.into(),
        thread_id: Some("t1".into()),
        tool_call_id: None,
        request_id: Some("q1".into()),
        job_id: Some("j1".into()),
        node_id: Some("n1".into()),
        node_type: Some("nodetool.image.TextToImage".into()),
        invocation_id: Some("j1:n1:0".into()),
        workflow_id: Some("w1".into()),
        project_id: Some(String::new()),
    };
    let request = v1::OpenGenerationRequest {
        origin: Some(origin.clone()),
        background: true,
        ..u1.to_open()
    };
    let row = u1.opened(request.clone()).await;
    assert_eq!(row.generation_id, request.generation_id);
    assert_eq!((row.user_id.as_str(), row.status()), ("u1", Is::Running));
    assert_eq!((row.owner_epoch, row.version, row.background), (1, 1, true));
    assert_eq!(row.parameters, Some(prompt("a paper boat")));
    // A chat wins over the run it is in; an empty text is no id.
    let told = Origin {
        surface: Surface::Chat.into(),
        project_id: None,
        ..origin
    };
    assert_eq!(row.origin, Some(told));
    assert_eq!(amount(row.estimated_cost.as_ref()), Some("0.040000000"));
    assert_eq!(
        (row.cost.as_ref(), row.price_source.as_ref(), row.assets_known),
        (None, None, false)
    );
    assert_eq!(
        row.facets.as_ref().map(v1::Facets::submission),
        Some(SubmissionStatus::Accepted)
    );
    assert_eq!(row.created_at, row.started_at);
    assert!(row.completed_at.is_none() && row.attempts.is_empty());
    assert_eq!(u1.get(&row.generation_id).await, row);
}

pub async fn g_006_the_same_open_twice_is_one_row(stack: Stack) {
    let u1 = stack.user("u1");
    let request = v1::OpenGenerationRequest {
        idempotency_key: Some("k1".into()),
        ..u1.to_open()
    };
    let first = u1.opened(request.clone()).await;
    // As a retry of the call, and as another try of the caller with an id of its own.
    for id in [request.generation_id.clone(), Uuid::now_v7().to_string()] {
        let again = v1::OpenGenerationRequest {
            generation_id: id,
            ..request.clone()
        };
        let answer = u1.open_generation(again).await.unwrap();
        assert!(!answer.created);
        assert_eq!(answer.generation.as_ref(), Some(&first));
    }
    assert_eq!(u1.all().await.len(), 1);
    // The outcome is what a later one gets.
    u1.mark(&first.generation_id).await.unwrap();
    u1.complete(&first.generation_id).await.unwrap();
    let answer = u1.open_generation(request).await.unwrap();
    assert_eq!(
        (answer.created, answer.generation.unwrap().status()),
        (false, Is::Completed)
    );
}

pub async fn g_007_a_key_with_another_request_is_refused(stack: Stack) {
    let u1 = stack.user("u1");
    let request = v1::OpenGenerationRequest {
        idempotency_key: Some("k1".into()),
        ..u1.to_open()
    };
    let first = u1.opened(request.clone()).await;
    let other = v1::OpenGenerationRequest {
        generation_id: Uuid::now_v7().to_string(),
        input_fingerprint: "cd".repeat(32),
        ..request
    };
    refused(
        u1.open_generation(other).await,
        Code::AlreadyExists,
        reason::IDEMPOTENCY_CONFLICT,
    );
    assert_eq!(u1.all().await, [first]);
}

pub async fn g_008_a_key_is_of_one_user(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    for user in [&u1, &u2] {
        user.opened(v1::OpenGenerationRequest {
            idempotency_key: Some("k1".into()),
            ..user.to_open()
        })
        .await;
    }
    assert_eq!((u1.all().await.len(), u2.all().await.len()), (1, 1));
}

pub async fn g_009_two_opens_at_once_through_two_replicas_are_one_row(stack: Stack) {
    let r2 = stack.replica().await;
    for round in 0..20 {
        let one = stack.user("u1");
        let two = stack.user_of(&r2, "u1");
        let key = Some(format!("k{round}"));
        let (first, second) = tokio::join!(
            one.open_generation(v1::OpenGenerationRequest {
                idempotency_key: key.clone(),
                ..one.to_open()
            }),
            two.open_generation(v1::OpenGenerationRequest {
                idempotency_key: key.clone(),
                ..two.to_open()
            }),
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(first.created ^ second.created);
        assert_eq!(
            first.generation.unwrap().generation_id,
            second.generation.unwrap().generation_id
        );
    }
    assert_eq!(stack.user("u1").all().await.len(), 20);
}

pub async fn g_010_without_a_key_every_open_is_a_row(stack: Stack) {
    let u1 = stack.user("u1");
    assert_ne!(u1.open().await, u1.open().await);
    assert_eq!(u1.all().await.len(), 2);
}

pub async fn an_id_that_is_taken_is_refused(stack: Stack) {
    let (u1, u2) = (stack.user("u1"), stack.user("u2"));
    let request = u1.to_open();
    let first = u1.opened(request.clone()).await;
    // The same request again is a retry, another one is not, and another user never learns whose it is.
    assert!(!u1.open_generation(request.clone()).await.unwrap().created);
    let other = v1::OpenGenerationRequest {
        input_fingerprint: "cd".repeat(32),
        ..request.clone()
    };
    refused(
        u1.open_generation(other).await,
        Code::AlreadyExists,
        reason::IDEMPOTENCY_CONFLICT,
    );
    refused(
        u2.open_generation(request).await,
        Code::AlreadyExists,
        reason::IDEMPOTENCY_CONFLICT,
    );
    assert_eq!(u1.all().await, [first]);
    assert!(u2.all().await.is_empty());
}

pub async fn bad_fields_are_named_and_nothing_is_opened(stack: Stack) {
    use tonic_types::StatusExt;
    let u1 = stack.user("u1");
    let good = u1.to_open();
    let bad = [
        (
            "generation_id",
            v1::OpenGenerationRequest {
                generation_id: "7".into(),
                ..good.clone()
            },
        ),
        (
            "provider",
            v1::OpenGenerationRequest {
                provider: String::new(),
                ..good.clone()
            },
        ),
        (
            "model",
            v1::OpenGenerationRequest {
                model: String::new(),
                ..good.clone()
            },
        ),
        (
            "capability",
            v1::OpenGenerationRequest {
                capability: "x".repeat(1_000),
                ..good.clone()
            },
        ),
        (
            "instance_id",
            v1::OpenGenerationRequest {
                instance_id: String::new(),
                ..good.clone()
            },
        ),
        (
            "origin.surface",
            v1::OpenGenerationRequest {
                origin: Some(Origin {
                    surface: 99,
                    ..Default::default()
                }),
                ..good.clone()
            },
        ),
        (
            "parameters",
            v1::OpenGenerationRequest {
                parameters: Some(prompt(&"x".repeat(300_000))),
                ..good
            },
        ),
    ];
    for (field, request) in bad {
        let status = refused(
            u1.open_generation(request).await,
            Code::InvalidArgument,
            reason::INVALID_FIELD,
        );
        let details = status.get_details_bad_request().unwrap();
        assert_eq!(details.field_violations[0].field, field);
    }
    let id = u1.open().await;
    for status in [Is::Unspecified, Is::Running, Is::Interrupted] {
        let answer = u1.close_generation(u1.to_close(&id, status)).await;
        refused(answer, Code::InvalidArgument, reason::INVALID_FIELD);
    }
    let persisted = v1::CloseGenerationRequest {
        persisted: "somewhere".into(),
        ..u1.to_complete(&id)
    };
    refused(
        u1.close_generation(persisted).await,
        Code::InvalidArgument,
        reason::INVALID_FIELD,
    );
    assert_eq!(u1.all().await.len(), 1);
    assert_eq!(u1.get(&id).await.version, 1);
}
