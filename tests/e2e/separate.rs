//! The services as processes of their own, joined by gRPC over sockets.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use atelier_cli::client::Client;
use atelier_common::testkit::until;
use atelier_tests::{process::binary, stack::text, workflows::example};
use serde_json::json;
use tokio::process::{Child, Command};
use tonic::transport::Endpoint;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use url::Url;

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
/// Starts a service on a port, with the addresses of its peers.
fn start(name: &str, port: u16, data: &Path, peers: &[(&str, u16)]) -> anyhow::Result<Child> {
    let program = binary()?.with_file_name(name);
    ensure!(
        program.exists(),
        "{} is not built: run `cargo build --workspace --bins` first",
        program.display()
    );
    let mut command = Command::new(program);
    command
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .env("ATELIER_PROCESS__DATA_DIR", data);
    command
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL")
        .env_remove("ATELIER_CONFIG");
    for (peer, port) in peers {
        command.env(
            format!("ATELIER_PROCESS__PEERS__{}", peer.to_uppercase()),
            format!("http://127.0.0.1:{port}"),
        );
    }
    Ok(command
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?)
}
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
    let data = tempfile::tempdir()?;
    let (tracker, asset, provider, kernel, gateway) = (
        free_port()?,
        free_port()?,
        free_port()?,
        free_port()?,
        free_port()?,
    );
    let _processes = [
        start("tracker-svc", tracker, data.path(), &[])?,
        start("asset-svc", asset, data.path(), &[])?,
        start(
            "provider-svc",
            provider,
            data.path(),
            &[("tracker", tracker), ("asset", asset)],
        )?,
        start(
            "kernel-svc",
            kernel,
            data.path(),
            &[("provider", provider), ("asset", asset)],
        )?,
        start(
            "gateway",
            gateway,
            data.path(),
            &[
                ("kernel", kernel),
                ("provider", provider),
                ("tracker", tracker),
                ("asset", asset),
            ],
        )?,
    ];
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
    let client = Client::new(Url::parse(&format!("http://127.0.0.1:{gateway}"))?)?;
    until(|| async { client.alive().await })
        .within(Duration::from_secs(30))
        .await;
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
