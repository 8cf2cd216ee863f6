//! Chat commands. There is no chat on this server: nothing of a thread is known, and a message is refused with a frame
//! that unlocks a client's input.

use atelier_proto::value::Value;

use super::commands::Request;
use super::refusal::Refusal;
use super::socket::{Connection, fields};

pub(crate) async fn run(connection: &Connection, request: &Request) -> Result<(), Refusal> {
    let thread_id = request.id("thread_id")?;
    match request.command.as_str() {
        "list_chat_turns" => {
            let reply = fields([("message", "Chat turns listed".into()), ("count", 0.into())]);
            connection.reply(request, reply).await?;
        }
        "resume_chat" => {
            let Some(thread_id) = thread_id else {
                return Err(Refusal::plain("thread_id is required"));
            };
            let frame = [
                ("type", Value::from("chat_resumed")),
                ("thread_id", thread_id.into()),
                ("status", "unknown".into()),
                ("last_seq", 0.into()),
                ("replay_count", 0.into()),
                ("replay_incomplete", false.into()),
            ];
            connection.send(fields(frame)).await?;
        }
        "chat_message" if thread_id.is_none() => {
            return Err(Refusal::plain("thread_id is required for chat_message command"));
        }
        _ => {
            let text = "Chat is not available on this server";
            let frame = [
                ("type", Value::from("error")),
                ("message", text.into()),
                ("error", text.into()),
                ("thread_id", thread_id.map_or(Value::Null, Into::into)),
            ];
            connection.send(fields(frame)).await?;
        }
    }
    Ok(())
}
