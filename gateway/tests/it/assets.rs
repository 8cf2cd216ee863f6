//! Bytes of assets: ranges, validators, keys (wire specification 5.7).

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stack::Stack;

fn bytes() -> Vec<u8> {
    (0..1000_u32)
        .map(|n| u8::try_from(n % 251).expect("small"))
        .collect()
}

async fn with_assets() -> Stack {
    let stack = Stack::start().await;
    stack.fakes.add_asset("1", "A1", "image/png", &bytes());
    stack
        .fakes
        .add_asset("1", "H1", "text/html", b"<script>1</script>");
    stack.fakes.add_asset("2", "F1", "image/png", &bytes());
    stack
}

async fn ranged(stack: &Stack, range: &str) -> reqwest::Response {
    stack
        .http
        .get(stack.url("/api/storage/1/A1.png"))
        .header("range", range)
        .send()
        .await
        .expect("answer")
}

#[tokio::test]
async fn w_138_and_139_ranges() {
    let stack = with_assets().await;
    let part = ranged(&stack, "bytes=0-99").await;
    assert_eq!(part.status().as_u16(), 206);
    assert_eq!(part.headers()["content-range"], "bytes 0-99/1000");
    assert_eq!(part.headers()["content-length"], "100");
    assert_eq!(part.bytes().await.expect("bytes"), bytes()[..100]);
    for range in ["bytes=-10", "bytes=990-", "bytes=990-5000"] {
        let part = ranged(&stack, range).await;
        assert_eq!(part.status().as_u16(), 206, "{range}");
        assert_eq!(part.headers()["content-range"], "bytes 990-999/1000");
        assert_eq!(part.bytes().await.expect("bytes"), bytes()[990..]);
    }
    // Only what is wanted is read.
    let downloads = stack.fakes.downloads.lock().expect("lock").clone();
    assert_eq!(downloads[0].length, Some(100));
    assert_eq!(downloads[1].offset, Some(990));
}

#[tokio::test]
async fn w_140_ranges_that_cannot_be_served() {
    let stack = with_assets().await;
    for range in ["bytes=2000-", "bytes=0-1,5-6"] {
        let refused = ranged(&stack, range).await;
        assert_eq!(refused.status().as_u16(), 416, "{range}");
        assert_eq!(refused.headers()["content-range"], "bytes */1000");
        let body: serde_json::Value = refused.json().await.expect("json");
        assert_eq!(body["error"]["reason"], "RANGE_NOT_SATISFIABLE");
    }
}

#[tokio::test]
async fn w_141_keys_that_are_none_and_keys_of_others() {
    let stack = with_assets().await;
    let (status, body) = stack.get("/api/storage/..%2Fx").await;
    assert_eq!((status, &body["error"]["reason"]), (400, &json!("INVALID_FIELD")));
    let mut answers = Vec::new();
    for key in ["2/F1.png", "1/F1.png", "F1.png", "1/missing.png", "2/A1.png"] {
        let (status, mut body) = stack.get(&format!("/api/storage/{key}")).await;
        assert_eq!(status, 404, "{key}");
        body["error"].as_object_mut().expect("error").remove("request_id");
        body["error"].as_object_mut().expect("error").remove("message");
        answers.push(body);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test]
async fn w_142_both_forms_of_a_key_and_the_asset_itself_give_the_same_bytes() {
    let stack = with_assets().await;
    for path in [
        "/api/storage/A1.png",
        "/api/storage/1/A1.png",
        "/api/storage/1/A1.jpg",
        "/api/v1/assets/A1/content",
    ] {
        let whole = stack.http.get(stack.url(path)).send().await.expect("answer");
        assert_eq!(whole.status().as_u16(), 200);
        assert_eq!(whole.headers()["content-type"], "image/png");
        assert_eq!(whole.headers()["accept-ranges"], "bytes");
        assert_eq!(whole.headers()["x-content-type-options"], "nosniff");
        assert_eq!(whole.bytes().await.expect("bytes"), bytes());
    }
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again_and_heads_have_no_body() {
    let stack = with_assets().await;
    let url = stack.url("/api/v1/assets/A1/content");
    let head = stack.http.head(&url).send().await.expect("answer");
    assert_eq!(head.status().as_u16(), 200);
    assert_eq!(head.headers()["content-length"], "1000");
    assert!(stack.fakes.downloads.lock().expect("lock").is_empty());
    let etag = head.headers()["etag"].clone();
    let again = stack
        .http
        .get(&url)
        .header("if-none-match", etag.clone())
        .send()
        .await
        .expect("answer");
    assert_eq!(again.status().as_u16(), 304);
    let other = stack
        .http
        .get(&url)
        .header("range", "bytes=0-9")
        .header("if-range", "\"other\"");
    assert_eq!(other.send().await.expect("answer").status().as_u16(), 200);
    let same = stack
        .http
        .get(&url)
        .header("range", "bytes=0-9")
        .header("if-range", etag);
    assert_eq!(same.send().await.expect("answer").status().as_u16(), 206);
}

#[tokio::test]
async fn what_a_browser_could_run_is_offered_as_a_file() {
    let stack = with_assets().await;
    let disposition = |path: &'static str| {
        let request = stack.http.get(stack.url(path));
        async move {
            let response = request.send().await.expect("answer");
            response.headers()["content-disposition"]
                .to_str()
                .expect("text")
                .to_owned()
        }
    };
    assert!(
        disposition("/api/v1/assets/A1/content")
            .await
            .starts_with("inline")
    );
    assert!(
        disposition("/api/v1/assets/A1/content?download=1")
            .await
            .starts_with("attachment")
    );
    assert!(
        disposition("/api/storage/H1.html")
            .await
            .starts_with("attachment")
    );
}

#[tokio::test]
async fn a_path_that_climbs_is_no_key_however_it_is_written() {
    let stack = with_assets().await;
    for path in [
        "/api/storage/../x",
        "/api/storage/1/../../x",
        "/api/storage/%2e%2e/x",
    ] {
        let mut socket = tokio::net::TcpStream::connect(stack.address)
            .await
            .expect("connected");
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            stack.address
        );
        socket.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("answer");
        assert!(answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
    }
}
