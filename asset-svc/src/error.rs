//! What can go wrong here, and how it is told over gRPC.

use atelier_common::db::DbError;
use atelier_proto::reason::{self, Problem};
use tonic::{Code, Status};

/// The domain of our reasons.
const DOMAIN: &str = "asset.atelier";

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller has no such asset. It says no id: an id of somebody else must get the same answer as a made-up one.
    #[error("asset not found")]
    NotFound,
    /// The request has no caller.
    #[error("the request has no caller")]
    NoCaller,
    /// A field of the request is wrong.
    #[error("{field} {wrong}")]
    Invalid {
        /// Its name.
        field: &'static str,
        /// What is wrong with it.
        wrong: &'static str,
    },
    /// The page token is not one of this list.
    #[error("the page token does not belong to this list")]
    PageToken,
    /// More bytes than allowed.
    #[error("the asset is larger than {limit} bytes")]
    TooLarge {
        /// The most that is allowed.
        limit: u64,
    },
    /// The range begins outside the asset.
    #[error("the range lies outside the {size} bytes of the asset")]
    Range {
        /// How many bytes there are.
        size: u64,
    },
    /// The URL of the store cannot be used.
    #[error("the url of the store cannot be used")]
    StoreUrl,
    /// The store failed.
    #[error("the store of assets cannot be reached")]
    Store(#[from] object_store::Error),
    /// The folder of the store failed.
    #[error("the folder of assets cannot be used")]
    Folder(#[source] std::io::Error),
    /// The database failed.
    #[error("the database cannot be reached")]
    Database(#[from] DbError),
    /// A row cannot be read.
    #[error("a row of an asset cannot be read")]
    Row(#[source] serde_json::Error),
    /// A task of ours died.
    #[error("a task has died")]
    Died(#[from] tokio::task::JoinError),
    /// A plan of a test asked for it.
    #[error("failure injected by a plan")]
    Injected,
    /// Something that cannot be is.
    #[error("{0}")]
    Bug(&'static str),
}

impl From<sea_orm::DbErr> for Error {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl Error {
    /// A wrong field.
    #[must_use]
    pub const fn invalid(field: &'static str, wrong: &'static str) -> Self {
        Self::Invalid { field, wrong }
    }

    fn parts(&self) -> (Code, &'static str) {
        match self {
            Self::NotFound => (Code::NotFound, reason::ASSET_NOT_FOUND),
            Self::NoCaller => (Code::Unauthenticated, reason::UNAUTHENTICATED),
            Self::Invalid { .. } => (Code::InvalidArgument, reason::INVALID_FIELD),
            Self::PageToken => (Code::InvalidArgument, reason::INVALID_PAGE_TOKEN),
            Self::TooLarge { .. } => (Code::InvalidArgument, reason::ASSET_TOO_LARGE),
            Self::Range { .. } => (Code::OutOfRange, reason::RANGE_NOT_SATISFIABLE),
            Self::StoreUrl | Self::Store(_) | Self::Folder(_) => {
                (Code::Unavailable, reason::STORE_UNAVAILABLE)
            }
            Self::Database(_) => (Code::Unavailable, reason::DATABASE_UNAVAILABLE),
            Self::Row(_) | Self::Died(_) | Self::Injected | Self::Bug(_) => {
                (Code::Internal, reason::INTERNAL)
            }
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let (code, reason) = error.parts();
        let chain = &error as &dyn std::error::Error;
        if code == Code::Internal {
            tracing::error!(error = chain, "call failed");
        } else if code == Code::Unavailable {
            tracing::warn!(error = chain, "call failed");
        } else {
            tracing::debug!(error = chain, "call refused");
        }
        let message = if code == Code::Internal {
            "internal error".to_owned()
        } else {
            error.to_string()
        };
        let problem = Problem::new(code, reason, DOMAIN, message);
        match error {
            Error::Invalid { field, wrong } => problem.field(field, wrong),
            Error::TooLarge { limit } => problem.with("limit_bytes", limit),
            Error::Range { size } => problem.with("size_bytes", size),
            Error::PageToken => problem.field("page_token", "is not a token of this list"),
            Error::NotFound
            | Error::NoCaller
            | Error::StoreUrl
            | Error::Store(_)
            | Error::Folder(_)
            | Error::Database(_)
            | Error::Row(_)
            | Error::Died(_)
            | Error::Injected
            | Error::Bug(_) => problem,
        }
        .into()
    }
}
