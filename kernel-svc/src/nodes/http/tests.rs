use std::net::SocketAddr;

use atelier_common::egress::{Egress, Limits};
use rstest::rstest;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    host::Host,
    nodes::testing::{Node, Script},
};

/// A server that answers every request with its first line and body, or as a path asks.
async fn server() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !complete(&request) {
                match stream.read(&mut buffer).await {
                    Ok(length) if length > 0 => request.extend_from_slice(&buffer[..length]),
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (status, kind, answer) = match path {
                "/json" => ("200 OK", "application/json", "{\"a\": [1, 2]}".to_owned()),
                "/auth" => {
                    let mut lines = head.lines();
                    let own = lines.find(|line| line.to_lowercase().starts_with("authorization: "));
                    ("200 OK", "text/plain", own.unwrap_or("none").to_owned())
                }
                "/gone" => ("404 Not Found", "text/plain", "no".to_owned()),
                "/big" => ("200 OK", "text/plain", "x".repeat(100_000)),
                "/csv" => ("200 OK", "text/csv", "a,b\n1,x\n".to_owned()),
                "/away" => (
                    "307 Temporary Redirect\r\nlocation: http://10.0.0.1/",
                    "text/plain",
                    String::new(),
                ),
                _ => {
                    let first = head.lines().next().unwrap_or_default();
                    let own = head
                        .to_lowercase()
                        .lines()
                        .find(|line| line.starts_with("x-own"))
                        .map(str::to_owned);
                    let kind = head
                        .to_lowercase()
                        .lines()
                        .find(|line| line.starts_with("content-type"))
                        .map(str::to_owned);
                    let seen = json!({"first": first, "own": own, "kind": kind, "body": body});
                    ("200 OK", "application/json", seen.to_string())
                }
            };
            let length = answer.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}
fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length
        .and_then(|length| length.trim().parse().ok())
        .is_none_or(|length: usize| body.len() >= length)
}
fn host(server: SocketAddr, folder: &std::path::Path) -> Host {
    Host {
        workspace: Some(folder.to_owned()),
        egress: Some(Egress::new([server.to_string()]).expect("a client")),
        limits: Limits {
            max_bytes: 50_000,
            ..Limits::default()
        },
        ..Host::default()
    }
}
/// Runs one node against a server of its own.
async fn run(node_type: &str, path: &str, mut inputs: Json) -> Result<Json, crate::node::NodeError> {
    let folder = tempfile::tempdir().expect("a folder");
    tokio::task::LocalSet::new()
        .run_until(async {
            let server = server().await;
            let url = if path.starts_with('/') {
                format!("http://{server}{path}")
            } else {
                path.to_owned()
            };
            if node_type.ends_with("DownloadFiles") {
                inputs["urls"] = json!([url, format!("http://{server}/gone"), "http://10.0.0.1/x"]);
            } else {
                inputs["url"] = json!(url);
            }
            let mut node = Node::on(node_type, [Script::default()], host(server, folder.path()));
            let out = node.process(inputs).await?;
            if let Some(file) = out["success"][0].as_str() {
                assert!(folder.path().join(file).is_file(), "{file}");
            }
            Ok(out)
        })
        .await
}

#[rstest]
#[case("GetText", "/gone/not", json!({"headers": "{\"X-Own\": \"1\"}"}), "output", json!(
    "{\"first\":\"GET /gone/not HTTP/1.1\",\"own\":\"x-own: 1\",\"kind\":null,\"body\":\"\"}"))]
#[case("GetJSON", "/json", json!({}), "output", json!({"a": [1, 2]}))]
#[case("GetBytes", "/csv", json!({}), "output", json!({"$bytes": "YSxiCjEseAo="}))]
#[case("GetRequest", "/csv", json!({"auth": null}), "output", json!("a,b\n1,x\n"))]
#[case("Post", "/p", json!({"body": {"k": 1}, "headers": "x-own: 2"}), "output", json!({"first": "POST /p HTTP/1.1",
    "own": "x-own: 2", "kind": "content-type: application/json", "body": "{\"k\":1}"}))]
#[case("Put", "/p", json!({"body": "plain"}), "output", json!({"first": "PUT /p HTTP/1.1", "own": null,
    "kind": "content-type: text/plain; charset=utf-8", "body": "plain"}))]
#[case("Patch", "/json", json!({"body": null}), "status", json!(200))]
#[case("Delete", "/gone", json!({}), "status", json!(404))]
#[case("Delete", "/gone", json!({}), "output", json!(false))]
#[case("DownloadFiles", "/csv", json!({}), "success", json!(["downloads/001_csv"]))]
#[tokio::test]
async fn addresses_are_asked(
    #[case] name: &str,
    #[case] path: &str,
    #[case] inputs: Json,
    #[case] handle: &str,
    #[case] expected: Json,
) {
    let out = run(&format!("lib.http.{name}"), path, inputs)
        .await
        .expect("an answer");
    assert_eq!(out[handle], expected);
}

/// A name and a password, or a token, in every form that is told.
#[rstest]
#[case(json!(null), "none")]
#[case(json!(""), "none")]
#[case(json!({}), "none")]
#[case(json!([]), "none")]
#[case(json!({"username": "ann", "password": "p:w"}), "Basic YW5uOnA6dw==")]
#[case(json!({"type": "basic", "username": "ann"}), "Basic YW5uOg==")]
#[case(json!(["ann", "pw"]), "Basic YW5uOnB3")]
#[case(json!("ann:pw"), "Basic YW5uOnB3")]
#[case(json!("Basic YW5uOnB3"), "Basic YW5uOnB3")]
#[case(json!({"type": "Bearer", "token": "t0ken"}), "Bearer t0ken")]
#[case(json!({"token": "t0ken"}), "Bearer t0ken")]
#[case(json!("bearer t0ken"), "Bearer t0ken")]
#[case(json!("t0ken"), "Bearer t0ken")]
#[tokio::test]
async fn whoever_asks_says_who_it_is(#[case] auth: Json, #[case] expected: &str) {
    for name in ["GetRequest", "GetText", "Post"] {
        let out = run(&format!("lib.http.{name}"), "/auth", json!({"auth": auth})).await;
        let out = out.expect("an answer")["output"].clone();
        let told = out.as_str().unwrap_or_default();
        let told = told.split_once(": ").map_or(told, |(_, value)| value);
        assert_eq!(told, expected);
    }
}
/// What an `auth` holds is in no fault, whatever is wrong.
#[rstest]
#[case("/auth", json!({"auth": {"type": "digest", "token": "hunter2"}}), "the input `auth` must be")]
#[case("/auth", json!({"auth": ["hunter2"]}), "the input `auth` must be")]
#[case("/auth", json!({"auth": "hunter2 and more"}), "the input `auth` must be")]
#[case("/auth", json!({"auth": "hun\nter2"}), "the input `auth` must be")]
#[case("/auth", json!({"auth": "ann:hunter2", "headers": "Authorization: x"}), "both say who asks")]
#[case("/gone", json!({"auth": "ann:hunter2"}), "answered with status 404")]
#[case("http://127.0.0.1:1/", json!({"auth": "ann:hunter2"}), "not a public address")]
#[tokio::test]
async fn what_says_who_asks_is_in_no_fault(#[case] path: &str, #[case] inputs: Json, #[case] part: &str) {
    let error = run("lib.http.GetRequest", path, inputs)
        .await
        .expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
    for secret in ["hun", "ter2", "YW5u"] {
        assert!(!format!("{error:?}").contains(secret), "{error:?}");
    }
}

#[rstest]
#[case("GetText", "/gone", json!({}), "answered with status 404")]
#[case("GetText", "/big", json!({}), "larger than 50000 bytes")]
#[case("GetText", "http://127.0.0.1:1/", json!({}), "not a public address")]
#[case("GetText", "http://169.254.169.254/latest", json!({}), "not a public address")]
#[case("Post", "/away", json!({"body": "x"}), "not a public address")]
#[case("GetText", "file:///etc/passwd", json!({}), "the scheme `file` is not allowed")]
#[case("GetText", "", json!({}), "the input `url` is empty")]
#[case("GetText", "/x", json!({"headers": "{"}), "the input `headers` is no JSON object")]
#[case("GetText", "/x", json!({"headers": "Host: b.org"}), "must not set `host`")]
#[case("GetText", "/x", json!({"headers": "no colon"}), "the input `headers` has a line without a colon")]
#[case("GetJSON", "/csv", json!({}), "the answer is no JSON")]
#[tokio::test]
async fn what_is_not_allowed_or_fails_is_said(
    #[case] name: &str,
    #[case] path: &str,
    #[case] inputs: Json,
    #[case] part: &str,
) {
    let error = run(&format!("lib.http.{name}"), path, inputs)
        .await
        .expect_err("a fault");
    assert!(error.message.contains(part), "{}", error.message);
}

#[tokio::test]
async fn a_table_comes_from_an_address_and_without_a_client_nothing_does() {
    let out = run("nodetool.data.LoadCSVURL", "/csv", json!({}))
        .await
        .expect("a table");
    assert_eq!(out["output"]["data"], json!([[1, "x"]]));
    let error = Node::new("lib.http.GetText")
        .process(json!({"url": "http://a.org"}))
        .await
        .expect_err("off");
    assert!(
        error.message.contains("no addresses in this deployment"),
        "{error}"
    );
}
