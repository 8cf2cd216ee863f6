//! Texts of others, made fit for a row: bounded, one line of plain text, and without what looks like a secret.

/// Longest error that a row keeps, in characters.
pub const ERROR_LIMIT: usize = 4_000;

/// The text without control characters, secrets and inline media, cut to `limit` characters.
#[must_use]
pub fn sanitise(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    let mut masked_next = false;
    // A long text is cut before the work, with room for what masking takes away.
    let head: String = text.chars().take(limit.saturating_mul(8)).collect();
    for word in head.split_inclusive(|c: char| c.is_whitespace() || c.is_control()) {
        let body = word.trim_end_matches(|c: char| c.is_whitespace() || c.is_control());
        let end = word.strip_prefix(body).unwrap_or_default();
        if masked_next && !body.is_empty() {
            out.push_str("[redacted]");
        } else {
            out.push_str(&masked(body));
        }
        masked_next = (masked_next && body.is_empty()) || announces_secret(body);
        out.extend(
            end.chars()
                .map(|c| if c.is_control() && c != '\n' { ' ' } else { c }),
        );
    }
    out.trim().chars().take(limit).collect()
}

/// Whether the word after this one is a secret, as in `Authorization: Bearer …`.
fn announces_secret(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    ["bearer", "basic", "key"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
        && !word.chars().all(char::is_lowercase)
}

fn masked(word: &str) -> String {
    let bare = word.trim_start_matches(['"', '\'', '(', '[', '{', '=', ':', ',']);
    let lead = word.strip_suffix(bare).unwrap_or_default();
    if bare.len() > 12
        && ["sk-", "key-", "pk-", "rk-", "xoxb-", "ghp_"]
            .iter()
            .any(|start| bare.starts_with(start))
    {
        return format!("{lead}[redacted]");
    }
    if bare
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("data:"))
        && bare.contains(',')
    {
        return format!("{lead}data:[redacted]");
    }
    if (bare.starts_with("http://") || bare.starts_with("https://"))
        && let Some((address, query)) = bare.split_once('?')
        && signed(query)
    {
        return format!("{lead}{address}?redacted");
    }
    for name in [
        "api_key=",
        "apikey=",
        "access_token=",
        "client_secret=",
        "password=",
        "secret=",
        "token=",
    ] {
        if let Some(at) = word.to_ascii_lowercase().find(name)
            && let Some(kept) = word.get(..at + name.len())
        {
            return format!("{kept}[redacted]");
        }
    }
    word.to_owned()
}

fn signed(query: &str) -> bool {
    query.split('&').any(|pair| {
        let key = pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
        ["signature", "sig", "token", "key", "api_key"].contains(&key.as_str()) || key.starts_with("x-amz-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_bounded_in_characters() {
        let text = sanitise(&"é".repeat(9_000), ERROR_LIMIT);
        assert_eq!(text.chars().count(), ERROR_LIMIT);
    }

    #[test]
    fn secrets_and_media_do_not_reach_a_row() {
        let text = "401 from https://h.example/x?sig=abc&a=1 with Authorization: Bearer abc.def \
                    and \"sk-0123456789abcdef\" in data:image/png;base64,AAAA, ok \u{7}";
        let clean = sanitise(text, ERROR_LIMIT);
        for secret in ["abc.def", "sk-01", "sig=abc", "AAAA"] {
            assert!(!clean.contains(secret), "{clean}");
        }
        assert!(
            clean.starts_with("401 from https://h.example/x?redacted with"),
            "{clean}"
        );
        assert!(clean.ends_with("ok"), "{clean}");
        assert_eq!(
            sanitise("the key of the model is wrong", 100),
            "the key of the model is wrong"
        );
    }
}
