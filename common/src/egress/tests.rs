use std::net::SocketAddr;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;

use super::*;
use crate::tasks::Tasks;

async fn server(router: Router) -> (SocketAddr, Tasks) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = Tasks::new();
    tasks.spawn("server", async move { axum::serve(listener, router).await });
    (address, tasks)
}

fn guarded() -> Egress {
    Egress::new::<&str>([]).unwrap()
}

#[tokio::test]
async fn refuses_addresses_that_are_not_public() {
    let egress = guarded();
    for url in [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://10.0.0.1:8080/",
        "https://localhost/",
    ] {
        let error = egress.get(url, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, EgressError::Forbidden(_)), "{url}: {error:?}");
    }
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
    ] {
        let error = egress.get(url, &Limits::default()).await.unwrap_err();
        assert!(matches!(error, EgressError::Scheme(_)), "{url}: {error:?}");
    }
    for url in [
        "http://user:secret@example.com/",
        "not an address",
        &format!("http://e.com/{}", "x".repeat(9000)),
    ] {
        let error = egress.get(url, &Limits::default()).await.unwrap_err();
        assert!(
            matches!(error, EgressError::Address(_)) && !error.to_string().contains("secret"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn judges_every_redirect() {
    let secret = Router::new().route("/", get(|| async { "secret" }));
    let (inside, _tasks) = server(secret).await;
    let router = Router::new()
        .route(
            "/by-address",
            get(move || async move { Redirect::temporary(&format!("http://{inside}/")) }),
        )
        .route(
            "/by-name",
            get(move || async move { Redirect::to(&format!("http://localhost:{}/", inside.port())) }),
        )
        .route("/scheme", get(|| async { Redirect::to("file:///etc/passwd") }))
        .route("/around", get(|| async { Redirect::to("/around") }))
        .route("/once", get(|| async { Redirect::to("/end") }))
        .route("/end", get(|| async { "end" }));
    let (outside, _tasks) = server(router).await;
    let egress = Egress::new([outside.to_string()]).unwrap();
    let fetch = |path: &str| {
        let (egress, url) = (egress.clone(), format!("http://{outside}{path}"));
        async move { egress.get(&url, &Limits::default()).await }
    };
    assert!(matches!(
        fetch("/by-address").await,
        Err(EgressError::Forbidden(_))
    ));
    assert!(matches!(fetch("/by-name").await, Err(EgressError::Forbidden(_))));
    assert!(matches!(fetch("/scheme").await, Err(EgressError::Scheme(_))));
    assert!(matches!(fetch("/around").await, Err(EgressError::Redirects)));
    let fetched = fetch("/once").await.unwrap();
    assert_eq!(fetched.bytes, "end");
    assert!(fetched.content_type.unwrap().starts_with("text/plain"));
}

#[tokio::test]
async fn keeps_to_size_and_time() {
    let endless = || async {
        let stream =
            futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 1024])));
        axum::body::Body::from_stream(stream)
    };
    let router = Router::new()
        .route("/endless", get(endless))
        .route("/large", get(|| async { vec![0_u8; 5000] }))
        .route("/never", get(std::future::pending::<&'static str>))
        .route("/missing", get(|| async { StatusCode::NOT_FOUND }));
    let (address, _tasks) = server(router).await;
    let egress = Egress::new([address.ip().to_string()]).unwrap();
    let limits = Limits {
        max_bytes: 4096,
        timeout: Duration::from_millis(500),
        max_redirects: 1,
    };
    let fetch = |path: &str| {
        let (egress, url, limits) = (egress.clone(), format!("http://{address}{path}"), limits.clone());
        async move { egress.get(&url, &limits).await.unwrap_err() }
    };
    assert!(matches!(fetch("/endless").await, EgressError::TooLarge(4096)));
    assert!(matches!(fetch("/large").await, EgressError::TooLarge(4096)));
    let error = fetch("/never").await;
    assert!(
        matches!(error, EgressError::TooSlow(_)) && error.transient(),
        "{error}"
    );
    let error = fetch("/missing").await;
    assert!(
        matches!(
            error,
            EgressError::Status {
                status: StatusCode::NOT_FOUND,
                ..
            }
        ) && !error.transient()
    );
}

#[test]
fn allows_by_host_and_port() {
    let egress = Egress::new(["127.0.0.1:9000", "[::1]:9000", "store.internal"]).unwrap();
    for url in [
        "http://127.0.0.1:9000/x",
        "http://[::1]:9000/x",
        "http://STORE.internal:1234/",
    ] {
        assert!(egress.check(url).is_ok(), "{url}");
    }
    for url in [
        "http://127.0.0.1:9001/x",
        "http://127.0.0.2:9000/x",
        "http://[::1]/",
    ] {
        assert!(egress.check(url).is_err(), "{url}");
    }
    assert!(Egress::new(["not a host"]).is_err());
}
