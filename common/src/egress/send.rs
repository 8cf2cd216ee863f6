//! Requests of any method to addresses that users name, with the whole answer whatever its status.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use tokio::time::Instant;
use url::Url;

use super::{Download, Egress, EgressError, Limits, failed, next, parse};

/// Headers that a caller sets and that another host may see after a redirect.
const HARMLESS: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::USER_AGENT,
];

/// What is sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: String,
    /// Headers beside those that the client sets itself.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status, which may be an error.
    pub status: StatusCode,
    /// What the server called the body; sniff before believing.
    pub content_type: Option<String>,
    /// The body.
    pub bytes: Bytes,
}

impl Egress {
    /// Sends a request and reads the whole answer. Redirects are judged like the address itself; headers of the caller are
    /// not told to another host, and a body is not sent again unless the status asks for it. Cancel safe: dropping it
    /// closes the connection.
    ///
    /// # Errors
    /// See [`EgressError`]; a status is none.
    pub async fn send(&self, request: Outgoing, limits: &Limits) -> Result<Reply, EgressError> {
        let Outgoing {
            mut method,
            url,
            mut headers,
            mut body,
        } = request;
        let deadline = Instant::now() + limits.timeout;
        let mut url = parse(&url)?;
        for _ in 0..=limits.max_redirects {
            let host = url.host_str().unwrap_or_default().to_owned();
            let mut sending = self
                .judge(&url)?
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                sending = sending.body(body.clone());
            }
            let response = match tokio::time::timeout_at(deadline, sending.send()).await {
                Err(_) => return Err(EgressError::TooSlow(limits.timeout)),
                Ok(Err(error)) => return Err(failed(host, error)),
                Ok(Ok(response)) => response,
            };
            let status = response.status();
            if status.is_redirection() && response.headers().contains_key(header::LOCATION) {
                let target = next(&url, response.headers())?;
                if !same_origin(&url, &target) {
                    headers = harmless(&headers);
                }
                let kept = matches!(
                    status,
                    StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
                );
                if !kept && method != Method::HEAD {
                    method = Method::GET;
                    body = None;
                    headers.remove(header::CONTENT_TYPE);
                }
                url = target;
                continue;
            }
            if response
                .content_length()
                .is_some_and(|length| length > limits.max_bytes)
            {
                return Err(EgressError::TooLarge(limits.max_bytes));
            }
            let mut download = Download {
                response,
                host,
                deadline,
                limits: limits.clone(),
                received: 0,
            };
            let content_type = download.content_type().map(str::to_owned);
            let mut bytes = BytesMut::new();
            while let Some(chunk) = download.chunk().await? {
                bytes.extend_from_slice(&chunk);
            }
            return Ok(Reply {
                status,
                content_type,
                bytes: bytes.freeze(),
            });
        }
        Err(EgressError::Redirects)
    }
}

fn same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    headers
        .iter()
        .filter(|(name, _)| HARMLESS.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        http::HeaderMap as Headers,
        response::Redirect,
        routing::{any, post},
    };

    use super::*;
    use crate::tasks::Tasks;

    async fn server(router: Router) -> (std::net::SocketAddr, Tasks) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = Tasks::new();
        tasks.spawn("server", async move { axum::serve(listener, router).await });
        (address, tasks)
    }

    #[tokio::test]
    async fn another_host_is_told_no_secret_and_gets_no_body_unasked() {
        let echo = |method: axum::http::Method, headers: Headers, body: String| async move {
            let own = headers
                .get("authorization")
                .map(|value| value.to_str().unwrap().to_owned());
            format!("{method} {own:?} {body}")
        };
        let (other, _tasks) = server(Router::new().route("/", any(echo))).await;
        let router = Router::new()
            .route("/", any(echo))
            .route(
                "/see",
                post(move || async move { Redirect::to(&format!("http://{other}/")) }),
            )
            .route("/same", post(|| async { Redirect::temporary("/") }));
        let (first, _tasks) = server(router).await;
        let egress = Egress::new([first.to_string(), other.to_string()]).unwrap();
        let send = |path: &str| {
            let request = Outgoing {
                method: Method::POST,
                url: format!("http://{first}{path}"),
                headers: HeaderMap::from_iter([(header::AUTHORIZATION, "secret".parse().unwrap())]),
                body: Some("body".into()),
            };
            let egress = egress.clone();
            async move { egress.send(request, &Limits::default()).await.unwrap() }
        };
        assert_eq!(&send("/").await.bytes[..], b"POST Some(\"secret\") body");
        assert_eq!(&send("/same").await.bytes[..], b"POST Some(\"secret\") body");
        assert_eq!(&send("/see").await.bytes[..], b"GET None ");
        assert_eq!(send("/gone").await.status, StatusCode::NOT_FOUND);
    }
}
