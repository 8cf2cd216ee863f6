//! The addresses that values on the wire carry: `/api/storage/<user>/<asset>.<ext>`, and the same without the user. The
//! extension is a hint, the id decides.

use atelier_proto::reason;
use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use tonic::Code;

use super::content;
use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::Path;
use crate::problem::ErrorBody;

/// The bytes behind the address of a value on the wire.
#[utoipa::path(
    get, path = "/api/storage/{key}", operation_id = "downloadStored", tag = "assets",
    params(("key" = String, Path, description = "`<asset>.<ext>` or `<user>/<asset>.<ext>`")),
    responses(
        (status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 206, description = "The range", content_type = "application/octet-stream"),
        (status = 304, description = "Not changed"),
        (status = 400, description = "The key is none", body = ErrorBody),
        (status = 404, description = "No such asset", body = ErrorBody),
        (status = 416, description = "The range lies outside", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(key): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let (user, id) = parse(&key).ok_or_else(|| Error::field("key", "is no key of a stored object"))?;
    if user.is_some_and(|user| user != caller.user_id) {
        return Err(missing());
    }
    content::serve(&app, &caller, id.to_owned(), false, &method, &headers).await
}

/// What the store says of an asset that is not there: one of another user looks the same.
fn missing() -> Error {
    let problem = reason::Problem::new(
        Code::NotFound,
        reason::ASSET_NOT_FOUND,
        "asset.atelier",
        "asset not found",
    );
    Error::Service(Box::new(problem.into()))
}

/// User and id of a key.
fn parse(key: &str) -> Option<(Option<&str>, &str)> {
    let (user, name) = match key.split_once('/') {
        Some((user, name)) => (Some(user), name),
        None => (None, key),
    };
    let is_name = |text: &str| {
        !text.is_empty()
            && !text.contains("..")
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let id = name.rsplit_once('.').map_or(name, |(id, _)| id);
    (is_name(name) && !id.is_empty() && user.is_none_or(is_name)).then_some((user, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w_141_and_142_keys_with_and_without_a_user() {
        assert_eq!(parse("A1.png"), Some((None, "A1")));
        assert_eq!(parse("1/A1.png"), Some((Some("1"), "A1")));
        assert_eq!(parse("1/A1"), Some((Some("1"), "A1")));
        for bad in [
            "",
            "../x",
            "1/../x",
            "..",
            "a/b/c.png",
            "/x.png",
            "1/",
            ".png",
            "a b.png",
            "1/x\\y",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
