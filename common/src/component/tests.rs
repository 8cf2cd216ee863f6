use std::time::Duration;

use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::*;
use crate::health::Gate;

fn deps() -> Deps {
    Deps::new(std::env::temp_dir(), Signer::random())
}

fn ask() -> Request<HealthCheckRequest> {
    Request::new(HealthCheckRequest::default())
}

#[tokio::test]
async fn health_is_the_same_in_memory_and_over_a_socket() {
    let deps = deps();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = deps.tasks.spawn("grpc", {
        let deps = deps.clone();
        async move { serve_grpc(Routes::default(), &[], listener, &deps).await }
    });
    let memory = channel::local(Routes::new(deps.health.service(deps.tasks.token())), &deps.signer);
    for transport in [memory, channel::remote(&format!("http://{address}")).unwrap()] {
        let mut client = HealthClient::new(transport).max_decoding_message_size(channel::MAX_MESSAGE_BYTES);
        let status = client.check(ask()).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving);
        deps.health
            .set("gate", Gate::NotReady("closed by the test".into()));
        let mut watch = client.watch(ask()).await.unwrap().into_inner();
        assert_eq!(
            watch.next().await.unwrap().unwrap().status(),
            ServingStatus::NotServing
        );
        deps.health.set("gate", Gate::Ready);
        assert_eq!(
            watch.next().await.unwrap().unwrap().status(),
            ServingStatus::Serving
        );
        let unknown = HealthCheckRequest {
            service: "no.such.Service".into(),
        };
        assert_eq!(client.check(unknown).await.unwrap_err().code(), Code::NotFound);
        let mut forged = ask();
        forged
            .metadata_mut()
            .insert(crate::identity::IDENTITY, "x.y".parse().unwrap());
        assert_eq!(
            client.check(forged).await.unwrap_err().code(),
            Code::Unauthenticated
        );
    }
    deps.tasks.stop();
    tokio::time::timeout(Duration::from_secs(10), serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let mut client = HealthClient::new(channel::remote(&format!("http://{address}")).unwrap());
    assert_eq!(client.check(ask()).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn open_streams_end_with_the_server_and_a_stuck_one_is_cut() {
    let stuck = axum::Router::new().route(
        "/stuck.S/M",
        axum::routing::any(std::future::pending::<&'static str>),
    );
    let deps = deps();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = deps.tasks.spawn("grpc", {
        let deps = deps.clone();
        async move { serve_grpc_within(stuck.into(), &[], listener, &deps, Duration::from_millis(200)).await }
    });
    let transport = channel::remote(&format!("http://{address}")).unwrap();
    let mut watch = HealthClient::new(transport.clone())
        .watch(ask())
        .await
        .unwrap()
        .into_inner();
    assert!(watch.next().await.unwrap().is_ok());
    let request = http::Request::post("/stuck.S/M")
        .body(tonic::body::Body::empty())
        .unwrap();
    let mut call = Box::pin(tower::ServiceExt::oneshot(transport.clone(), request));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut call)
            .await
            .is_err()
    );
    let request = http::Request::post("/stuck.S/M")
        .header("grpc-timeout", "100m")
        .body(tonic::body::Body::empty());
    let answer = tower::ServiceExt::oneshot(transport.clone(), request.unwrap()).await;
    let status = match answer {
        Ok(answer) => tonic::Status::from_header_map(answer.headers()).unwrap(),
        Err(error) => tonic::Status::from_error(error.into()),
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    deps.tasks.stop();
    assert!(watch.next().await.is_none_or(|end| end.is_err()));
    tokio::time::timeout(Duration::from_secs(5), serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn reflection_answers_in_both_versions() {
    let deps = deps();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let set = tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET;
    let _serving = deps.tasks.spawn("grpc", {
        let deps = deps.clone();
        async move { serve_grpc(Routes::default(), &[set, set], listener, &deps).await }
    });
    let transport = channel::remote(&format!("http://{address}")).unwrap();
    macro_rules! services {
        ($version:ident) => {{
            use tonic_reflection::pb::$version as pb;
            let request = pb::ServerReflectionRequest {
                host: String::new(),
                message_request: Some(pb::server_reflection_request::MessageRequest::ListServices(
                    String::new(),
                )),
            };
            let mut client = pb::server_reflection_client::ServerReflectionClient::new(transport.clone());
            let mut answers = client
                .server_reflection_info(tokio_stream::once(request))
                .await
                .unwrap()
                .into_inner();
            match answers.next().await.unwrap().unwrap().message_response.unwrap() {
                pb::server_reflection_response::MessageResponse::ListServicesResponse(list) => list
                    .service
                    .into_iter()
                    .map(|service| service.name)
                    .collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            }
        }};
    }
    for services in [services!(v1), services!(v1alpha)] {
        assert!(
            services.iter().any(|name| name == "grpc.health.v1.Health"),
            "{services:?}"
        );
    }
    deps.tasks.stop();
}

#[tokio::test]
async fn the_page_for_operators_tells_what_is_closed() {
    let deps = deps();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = deps.tasks.spawn("admin", {
        let (health, tasks) = (deps.health.clone(), deps.tasks.clone());
        async move { serve_admin(listener, health, &tasks).await }
    });
    let client = crate::egress::plain_client().unwrap();
    let get = |path: &str| {
        let request = client.get(format!("http://{address}{path}")).send();
        async move {
            let response = request.await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        }
    };
    assert_eq!(get("/livez").await.0, 200);
    assert_eq!(get("/readyz").await.0, 200);
    deps.health.set("database", Gate::NotReady("connecting".into()));
    assert_eq!(get("/readyz").await, (503, "database: connecting\n".into()));
    assert_eq!(get("/metrics").await.0, 200);
    deps.tasks.stop();
    tokio::time::timeout(Duration::from_secs(5), serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[test]
fn a_missing_peer_is_named() {
    let mut peers = Peers::default();
    peers.insert("one", channel::local(Routes::default(), &Signer::random()));
    assert!(peers.get("one").is_ok());
    let error = peers.get("two").err().unwrap().to_string();
    assert!(error.contains("`two`") && error.contains("one"), "{error}");
}
