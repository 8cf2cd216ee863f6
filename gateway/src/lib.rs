//! The gateway: the door to atelier for everything that is no service of it. It authenticates, translates and streams;
//! it owns nothing.
//!
//! What lives here: the REST interface (`rest`), server-sent events (`sse`), the socket (`ws`), the public JSON and how
//! contracts become it (`wire`), errors as HTTP answers (`problem`), who a request is from (`auth`), the description of
//! the interface (`openapi`) and the console (`console`). What does not: runs, their events and their order
//! (kernel-svc), calls to providers (provider-svc), their rows and costs (tracker-svc), assets and bytes (asset-svc).
//!
//! Where to start: [`Gateway`], then `openapi.rs` for the routes of REST and `ws/commands.rs` for those of the socket.

mod app;
mod auth;
mod clients;
mod console;
mod error;
mod extract;
mod gateway;
mod http;
pub mod metrics;
mod openapi;
mod problem;
mod rest;
mod settings;
mod sse;
mod watch;
mod wire;
mod ws;

pub use error::Error;
pub use gateway::Gateway;
pub use openapi::json as openapi_json;
pub use settings::{Cors, Settings, Ws};
