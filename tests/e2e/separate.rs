//! The services as processes of their own, joined by gRPC over sockets.

use std::time::Duration;

use anyhow::Context;
use atelier_common::testkit::until;
use atelier_tests::{
    cluster::{Cluster, Ports},
    stack::text,
    workflows::example,
};
use serde_json::json;
use tonic::transport::Endpoint;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

/// Waits until a service says that it serves, and lists what it offers.
async fn offers(port: u16) -> anyhow::Result<Vec<String>> {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
    until(|| async {
        let Ok(channel) = endpoint.connect().await else {
            return false;
        };
        let answer = HealthClient::new(channel)
            .check(HealthCheckRequest {
                service: String::new(),
            })
            .await;
        answer.is_ok_and(|answer| answer.get_ref().status() == ServingStatus::Serving)
    })
    .within(Duration::from_secs(30))
    .await;
    let mut client = ServerReflectionClient::new(endpoint.connect().await?);
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = client
        .server_reflection_info(tokio_stream::once(ask))
        .await?
        .into_inner();
    let answer = answers.message().await?.context("no answer")?;
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        anyhow::bail!("reflection lists no services");
    };
    Ok(list.service.into_iter().map(|service| service.name).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn five_processes_do_what_one_does() -> anyhow::Result<()> {
    let cluster = Cluster::start(&[]).await?;
    let Ports {
        tracker,
        asset,
        provider,
        kernel,
        ..
    } = cluster.ports;
    for (port, service) in [
        (tracker, "atelier.tracker.v1.GenerationService"),
        (asset, "atelier.asset.v1.AssetService"),
        (provider, "atelier.provider.v1.ProviderService"),
        (kernel, "atelier.kernel.v1.JobService"),
    ] {
        let offered = offers(port).await?;
        assert!(
            offered.iter().any(|name| name == service),
            "{service} is not in {offered:?}"
        );
        assert!(
            offered.iter().any(|name| name == "grpc.health.v1.Health"),
            "{offered:?}"
        );
    }
    let client = cluster.client();
    let body = json!({"workflow": example("six-images")?, "params": {"idea": "a harbour"}});
    let job = client.post("/api/v1/jobs?wait=120", &body).await?;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    assert_eq!(job["cost"]["amount"], json!("0.24"));
    let assets = client
        .list(
            "/api/v1/assets",
            "assets",
            &[("job_id", text(&job, "id").to_owned())],
            100,
        )
        .await?;
    assert_eq!(assets.len(), 6);
    Ok(())
}
