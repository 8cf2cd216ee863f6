//! What can go wrong on the way out.

use std::time::Duration;

use http::StatusCode;

/// Why something was not fetched. Texts name no query and no credentials of the address.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// It is not an address, is too long, or carries a user name.
    #[error("the address is not valid: {0}")]
    Address(&'static str),
    /// It is neither http nor https.
    #[error("the scheme `{0}` is not allowed")]
    Scheme(String),
    /// It leads into a range that is not public.
    #[error("the host `{0}` is not a public address")]
    Forbidden(String),
    /// The client could not be made.
    #[error("cannot make the http client")]
    Client(#[source] reqwest::Error),
    /// The host could not be reached or broke off.
    #[error("cannot fetch from `{host}`")]
    Unreachable {
        /// The host.
        host: String,
        /// What the client said, without the address.
        #[source]
        source: reqwest::Error,
    },
    /// It answered with another status than success.
    #[error("`{host}` answered with status {status}")]
    Status {
        /// The host.
        host: String,
        /// The status.
        status: StatusCode,
    },
    /// The body is larger than allowed.
    #[error("the content is larger than {0} bytes")]
    TooLarge(u64),
    /// It took too long.
    #[error("the content did not arrive within {}", humantime::format_duration(*.0))]
    TooSlow(Duration),
    /// There were too many redirects, or one that leads nowhere.
    #[error("the address redirects too often or to nowhere")]
    Redirects,
}

impl EgressError {
    /// Whether the same fetch may succeed later.
    pub fn transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TooSlow(_) => true,
            Self::Status { status, .. } => {
                status.is_server_error()
                    || *status == StatusCode::TOO_MANY_REQUESTS
                    || *status == StatusCode::REQUEST_TIMEOUT
            }
            Self::Address(_)
            | Self::Scheme(_)
            | Self::Forbidden(_)
            | Self::Client(_)
            | Self::TooLarge(_)
            | Self::Redirects => false,
        }
    }
}
