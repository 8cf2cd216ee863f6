//! The socket (wire specification 1 and 2): one file per concern, one per command.
//!
//! `socket.rs` is the life of a connection, `queue.rs` what goes out, `decode.rs` what comes in, `commands.rs` which
//! command is meant, `attach.rs` the runs that a connection watches.

mod attach;
mod cancel_job;
mod chat;
mod commands;
mod control;
mod decode;
mod encode;
mod get_status;
mod inputs;
mod queue;
mod rate;
mod reconnect_job;
mod refusal;
mod resume_job;
mod rpc;
mod run_job;
mod set_mode;
mod socket;
mod stop;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::auth::Who;
use crate::error::{Error, http_reason};

/// Makes a socket of a request. Any query is fine, no protocol below is agreed on.
pub(crate) async fn upgrade(
    State(app): State<App>,
    Who(caller): Who,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Error> {
    let upgrade = upgrade.map_err(|rejection| Error::Http {
        status: StatusCode::UPGRADE_REQUIRED,
        code: "invalid_argument",
        reason: http_reason::UPGRADE_REQUIRED,
        message: format!("this is a socket: {}", rejection.body_text()),
    })?;
    if app.tasks.stopping() {
        return Err(Error::Draining);
    }
    let limit = app.settings.ws.max_message_bytes;
    // The drain waits for the connection.
    let hold = app.tasks.hold();
    let upgrade =
        upgrade
            .max_message_size(limit)
            .max_frame_size(limit)
            .on_upgrade(move |socket| async move {
                socket::serve(app, caller, socket).await;
                drop(hold);
            });
    Ok(upgrade.into_response())
}
