//! Questions about the form of a text.

use std::{net::IpAddr, sync::LazyLock};

use atelier_proto::value::Map;
use regex::Regex;

use super::{
    args::{Args, map, one},
    code::{Routed, Types, factory},
};
use crate::node::NodeError;

/// All types of this family.
pub(super) fn types() -> Types {
    vec![
        (
            "lib.validate.Email",
            factory(Routed(|args| Ok(one("output", is_email(&args.text("value")))))),
        ),
        ("lib.validate.IP", factory(Routed(ip))),
        ("lib.validate.Sanitize", factory(Routed(sanitize))),
        ("lib.validate.String", factory(Routed(string))),
        (
            "lib.validate.URL",
            factory(Routed(|args| Ok(one("output", is_url(&args.text("value")))))),
        ),
    ]
}

/// A mailbox and a domain with a dot, as mail servers take them.
fn is_email(text: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x)^[a-zA-Z0-9!\#$%&'*+/=?^_`{|}~-]+(\.[a-zA-Z0-9!\#$%&'*+/=?^_`{|}~-]+)*
            @([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,63}$",
        )
        .ok()
    });
    let local = text.split('@').next().unwrap_or_default();
    text.len() <= 254 && local.len() <= 64 && FORM.as_ref().is_some_and(|form| form.is_match(text))
}
fn is_url(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let named = host.contains('.') || host.parse::<IpAddr>().is_ok() || host.starts_with('[');
    matches!(url.scheme(), "http" | "https" | "ftp") && named && !text.contains(char::is_whitespace)
}
fn ip(args: Args<'_>) -> Result<Map, NodeError> {
    let address: Option<IpAddr> = args.text("value").parse().ok();
    Ok(map([
        ("is_ip", address.is_some().into()),
        ("is_ipv4", address.is_some_and(|address| address.is_ipv4()).into()),
        ("is_ipv6", address.is_some_and(|address| address.is_ipv6()).into()),
    ]))
}
fn string(args: Args<'_>) -> Result<Map, NodeError> {
    let text = args.text("value");
    let all = |fits: fn(char) -> bool| !text.is_empty() && text.chars().all(fits);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let is_number = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.parse::<f64>().is_ok();
    let is_uuid = text.len() == 36 && text.parse::<uuid::Uuid>().is_ok();
    let is_json = serde_json::from_str::<serde_json::Value>(&text)
        .is_ok_and(|json| json.is_object() || json.is_array());
    Ok(map([
        ("is_email", is_email(&text).into()),
        ("is_url", is_url(&text).into()),
        ("is_uuid", is_uuid.into()),
        ("is_json", is_json.into()),
        ("is_numeric", is_number.into()),
        ("is_alpha", all(|letter| letter.is_ascii_alphabetic()).into()),
        (
            "is_alphanumeric",
            all(|letter| letter.is_ascii_alphanumeric()).into(),
        ),
    ]))
}
/// The text for a page, without space around, and as an address in one spelling.
fn sanitize(args: Args<'_>) -> Result<Map, NodeError> {
    let text = args.text("value");
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            '/' => escaped.push_str("&#x2F;"),
            '\\' => escaped.push_str("&#x5C;"),
            '`' => escaped.push_str("&#96;"),
            other => escaped.push(other),
        }
    }
    let trimmed = text.trim().to_owned();
    let normalized = if is_email(&trimmed) {
        trimmed.to_lowercase()
    } else {
        String::new()
    };
    Ok(map([
        ("escaped", escaped.into()),
        ("trimmed", trimmed.into()),
        ("normalized_email", normalized.into()),
    ]))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::nodes::testing::process;

    #[rstest]
    #[case("ann@example.org", true)]
    #[case("a.b+c@x-y.co.uk", true)]
    #[case("ann@localhost", false)]
    #[case("ann.@example.org", false)]
    #[case("a b@example.org", false)]
    #[case("", false)]
    fn addresses_of_mail(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_email(text), expected, "{text}");
    }

    #[rstest]
    #[case("https://example.org/a?b#c", true)]
    #[case("http://127.0.0.1:80", true)]
    #[case("http://[::1]/", true)]
    #[case("example.org", false)]
    #[case("javascript:alert(1)", false)]
    #[case("http://a b.org", false)]
    fn addresses_of_pages(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_url(text), expected, "{text}");
    }

    #[tokio::test]
    async fn texts_are_judged() {
        let ask = |name: &'static str, value: &'static str| async move {
            process(&format!("lib.validate.{name}"), json!({"value": value}))
                .await
                .expect("an answer")
        };
        let ip = ask("IP", "::1").await;
        assert_eq!(ip, json!({"is_ip": true, "is_ipv4": false, "is_ipv6": true}));
        let number = ask("String", "-1.5").await;
        assert_eq!(
            (&number["is_numeric"], &number["is_alpha"]),
            (&json!(true), &json!(false))
        );
        let uuid = ask("String", "0193a5b0-0000-7000-8000-000000000000").await;
        assert_eq!(uuid["is_uuid"], true);
        assert_eq!(ask("String", "[1]").await["is_json"], true);
        let clean = ask("Sanitize", " Ann@Example.org ").await;
        assert_eq!(
            (&clean["trimmed"], &clean["normalized_email"]),
            (&json!("Ann@Example.org"), &json!("ann@example.org"))
        );
        assert_eq!(ask("Sanitize", "<a>&").await["escaped"], "&lt;a&gt;&amp;");
    }
}
