use std::time::Duration;

use axum::Router;
use axum::routing::any;
use http::HeaderMap;
use http_body_util::BodyExt;
use tonic::Code;
use tower::ServiceExt;

use super::*;
use crate::channel::{self, Transport};
use crate::identity::{Caller, IDENTITY};
use crate::trace;

/// Services that misbehave: a path each.
fn routes() -> Routes {
    async fn who(request: http::Request<axum::body::Body>) -> http::Response<axum::body::Body> {
        let caller = request
            .extensions()
            .get::<Caller>()
            .map(|caller| caller.user_id.clone());
        let trace = trace::Context::current().map(|context| context.trace_id());
        let text = format!("{} {}", caller.unwrap_or_default(), trace.unwrap_or_default());
        http::Response::new(axum::body::Body::from(text))
    }
    async fn breaks() -> http::Response<axum::body::Body> {
        panic!("secret text")
    }
    async fn breaks_later() -> http::Response<axum::body::Body> {
        let stream =
            futures_util::stream::poll_fn(|_| -> std::task::Poll<Option<Result<&'static str, Infallible>>> {
                panic!("secret text")
            });
        http::Response::new(axum::body::Body::from_stream(stream))
    }
    async fn never() -> http::Response<axum::body::Body> {
        std::future::pending().await
    }
    async fn never_ends() -> http::Response<axum::body::Body> {
        let stream = futures_util::stream::pending::<Result<&'static str, Infallible>>();
        http::Response::new(axum::body::Body::from_stream(stream))
    }
    let router = Router::new()
        .route("/t.S/Who", any(who))
        .route("/t.S/Breaks", any(breaks))
        .route("/t.S/BreaksLater", any(breaks_later))
        .route("/t.S/Never", any(never))
        .route("/t.S/NeverEnds", any(never_ends));
    Routes::from(router)
}

/// The code, the message and the body of an answer.
async fn call(transport: &Transport, request: http::Request<Body>) -> (Code, String, String) {
    let response = transport.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let text = String::from_utf8(collected.to_bytes().to_vec()).unwrap();
    let find = |headers: &HeaderMap| Status::from_header_map(headers);
    match find(&parts.headers).or_else(|| find(&trailers)) {
        Some(status) => (status.code(), status.message().to_owned(), text),
        None => (Code::Ok, String::new(), text),
    }
}

fn to(path: &str) -> http::request::Builder {
    http::Request::post(format!("/t.S/{path}"))
}

#[tokio::test]
async fn a_panic_is_internal_and_tells_nothing() {
    let transport = channel::local(routes(), &Signer::random());
    for path in ["Breaks", "BreaksLater"] {
        let (code, message, _) = call(&transport, to(path).body(Body::empty()).unwrap()).await;
        assert_eq!(
            (code, message.as_str()),
            (Code::Internal, "internal error"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_claimed_caller_is_not_believed() {
    let signer = Signer::random();
    let transport = channel::local(routes(), &signer);
    let who = || to("Who");
    let (code, _, text) = call(
        &transport,
        who().extension(Caller::local()).body(Body::empty()).unwrap(),
    )
    .await;
    assert_eq!((code, text.split(' ').next()), (Code::Ok, Some("")));

    let signed = signer.request((), &Caller::new("42", ["run"]));
    let value = signed.metadata().get(IDENTITY).unwrap().to_str().unwrap();
    let (_, _, text) = call(
        &transport,
        who().header(IDENTITY, value).body(Body::empty()).unwrap(),
    )
    .await;
    assert_eq!(text.split(' ').next(), Some("42"));

    let (code, ..) = call(
        &transport,
        who()
            .header(IDENTITY, "forged.value")
            .body(Body::empty())
            .unwrap(),
    )
    .await;
    assert_eq!(code, Code::Unauthenticated);
}

#[tokio::test]
async fn the_trace_goes_on_in_the_handler() {
    let transport = channel::local(routes(), &Signer::random());
    let context = trace::Context::root();
    let request = to("Who").body(Body::empty()).unwrap();
    let (_, _, text) = context.scope(call(&transport, request)).await;
    assert_eq!(text.split(' ').nth(1), Some(context.trace_id().as_str()));
    let (_, _, text) = call(&transport, to("Who").body(Body::empty()).unwrap()).await;
    assert_eq!(text.split(' ').nth(1).map(str::len), Some(32));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_calls_and_streams() {
    let transport = channel::local(routes(), &Signer::random());
    for path in ["Never", "NeverEnds"] {
        let request = to(path)
            .header("grpc-timeout", "300m")
            .body(Body::empty())
            .unwrap();
        let (code, ..) = tokio::time::timeout(Duration::from_secs(5), call(&transport, request))
            .await
            .unwrap();
        assert_eq!(code, Code::DeadlineExceeded, "{path}");
    }
}

#[tokio::test]
async fn too_many_calls_are_refused() {
    let limited = ServiceBuilder::new()
        .layer(limit::Limit::new(1))
        .service(routes());
    let mut running = Box::pin(limited.clone().oneshot(to("Never").body(Body::empty()).unwrap()));
    assert!(futures_util::poll!(&mut running).is_pending());
    let answer = limited
        .clone()
        .oneshot(to("Who").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(body::code_of(answer.headers()), Some(Code::ResourceExhausted));
    drop(running);
    let answer = limited
        .oneshot(to("Who").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(body::code_of(answer.headers()), None);
}

#[tokio::test]
async fn calls_are_counted_and_unknown_methods_are_not_labels() {
    crate::metrics::install();
    let transport = channel::local(Routes::default(), &Signer::random());
    let request = http::Request::post("/any.Thing/Whatever")
        .body(Body::empty())
        .unwrap();
    assert_eq!(call(&transport, request).await.0, Code::Unimplemented);
    let page = crate::metrics::render();
    assert!(
        page.contains("{method=\"unknown\",code=\"unimplemented\"}"),
        "{page}"
    );
    assert!(!page.contains("Whatever"), "{page}");
}
