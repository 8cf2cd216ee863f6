//! `set_mode`: how frames go out from here on.

use super::commands::Request;
use super::encode::Mode;
use super::refusal::Refusal;
use super::socket::{Connection, fields};

pub(crate) async fn run(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let word = request
        .data
        .get("mode")
        .and_then(|mode| mode.as_str())
        .unwrap_or_default();
    let mode = match word {
        "binary" => Mode::Binary,
        "text" => Mode::Text,
        _ => return Err(Refusal::plain("mode must be binary or text")),
    };
    connection.queue.set_mode(mode);
    connection
        .reply(
            request,
            fields([("message", format!("Mode set to {word}").into())]),
        )
        .await?;
    Ok(())
}
