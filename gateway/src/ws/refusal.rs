//! Why a command was not done, in the shapes that clients know (wire specification 2.1): no `type`, a key `error`.

use atelier_proto::value::{Map, Value};

use super::queue::Closed;
use crate::error::Error;
use crate::problem::message_of;

/// Why a command was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Its data are wrong.
    Malformed(String),
    /// It failed.
    Failed(String),
    /// The text of this command for this case, with the keys that clients expect beside it.
    Plain(String, Vec<(&'static str, Value)>),
    /// The connection is closing; nobody hears a reason.
    Closed,
}

impl Refusal {
    /// A text without further keys.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::Plain(text.into(), Vec::new())
    }

    /// The reply to a command; none when the connection is closing.
    pub(crate) fn reply(self, command: &str) -> Option<Map> {
        let mut reply = Map::new();
        match self {
            Self::Malformed(detail) => {
                reply.insert("error".to_owned(), "invalid_command".into());
                reply.insert(
                    "details".to_owned(),
                    format!("Malformed '{command}' data: {detail}").into(),
                );
            }
            Self::Failed(text) => {
                reply.insert("error".to_owned(), "invalid_command".into());
                reply.insert("details".to_owned(), text.into());
            }
            Self::Plain(text, keys) => {
                reply.insert("error".to_owned(), text.into());
                reply.extend(keys.into_iter().map(|(key, value)| (key.to_owned(), value)));
            }
            Self::Closed => return None,
        }
        Some(reply)
    }
}

impl From<Closed> for Refusal {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(text_of(&error))
    }
}

/// The text of an error, without what only we may know.
pub(crate) fn text_of(error: &Error) -> String {
    match error {
        Error::Service(status) => message_of(status),
        Error::Field { .. }
        | Error::Http { .. }
        | Error::Unanswered
        | Error::Forbidden(_)
        | Error::Unauthenticated
        | Error::Draining => error.to_string(),
    }
}
