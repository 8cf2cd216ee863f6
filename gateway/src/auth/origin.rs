//! Stops pages of other origins: a name that was rebound to this machine (the `Host` header) and a socket or a form that
//! a foreign page opens (the `Origin` header).

use axum::http::{HeaderMap, Uri, header};
use url::{Host, Url};

use crate::error::Error;
use crate::settings::Cors;

/// Checks the host that a request names and the origin it comes from.
///
/// # Errors
/// `Forbidden` when one of them is neither of this machine nor in the settings.
pub(super) fn check(uri: &Uri, headers: &HeaderMap, cors: &Cors) -> Result<(), Error> {
    let named = headers
        .get(header::HOST)
        .map(|host| host.to_str().unwrap_or_default());
    let host = named.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
    let host = host.and_then(|host| Url::parse(&format!("http://{host}")).ok());
    if !host.is_some_and(|host| {
        host.host()
            .is_some_and(|host| is_ours(&host) || listed(&host, &cors.hosts))
    }) {
        return Err(Error::Forbidden("the host that the request names is not allowed"));
    }
    for origin in headers.get_all(header::ORIGIN) {
        if !origin.to_str().is_ok_and(|origin| may_call(origin, cors)) {
            return Err(Error::Forbidden("the origin of the request is not allowed"));
        }
    }
    Ok(())
}

/// Whether pages of an origin may call: those of this machine, and those in the settings.
pub(crate) fn may_call(origin: &str, cors: &Cors) -> bool {
    if cors.origins.iter().any(|allowed| allowed == origin) {
        return true;
    }
    let Ok(url) = Url::parse(origin) else { return false };
    matches!(url.scheme(), "http" | "https")
        && url
            .host()
            .is_some_and(|host| is_ours(&host) || listed(&host, &cors.hosts))
}

fn is_ours(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
        Host::Ipv4(address) => super::is_loopback((*address).into()),
        Host::Ipv6(address) => super::is_loopback((*address).into()),
    }
}

fn listed(host: &Host<&str>, hosts: &[String]) -> bool {
    let host = host.to_string();
    hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("host", host.parse().expect("host"));
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().expect("origin"));
        }
        let cors = Cors {
            origins: vec!["https://studio.example".to_owned()],
            hosts: vec!["box.example".to_owned()],
        };
        check(&Uri::from_static("/ws"), &headers, &cors).is_ok()
    }

    #[test]
    fn a_rebound_name_is_refused() {
        for host in [
            "127.0.0.1:7777",
            "localhost:7777",
            "LOCALHOST",
            "[::1]:7777",
            "box.example",
        ] {
            assert!(checked(host, None), "{host}");
        }
        for host in [
            "evil.example:7777",
            "127.0.0.1.evil.example",
            "10.0.0.7",
            "localhost.evil.example",
            "",
        ] {
            assert!(!checked(host, None), "{host}");
        }
    }

    #[test]
    fn a_foreign_page_is_refused() {
        for origin in [
            "http://127.0.0.1:7777",
            "http://localhost:5173",
            "https://studio.example",
        ] {
            assert!(checked("127.0.0.1:7777", Some(origin)), "{origin}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost.evil.example",
            "file://",
            "http://10.0.0.7",
        ] {
            assert!(!checked("127.0.0.1:7777", Some(origin)), "{origin}");
        }
    }
}
