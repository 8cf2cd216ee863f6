//! Threads: a conversation's id.

use async_trait::async_trait;
use atelier_proto::value::Map;

use crate::{
    node::{Context, Executor, NodeError},
    nodes::{
        args::{Args, one},
        code::{Types, factory},
    },
};

/// All types of this part.
pub(super) fn types() -> Types {
    vec![("nodetool.agents.CreateThread", factory(CreateThread))]
}

/// Gives the id that it was given, else one of its own, which is the same when the invocation is repeated.
#[derive(Clone, Copy)]
struct CreateThread;
#[async_trait]
impl Executor for CreateThread {
    async fn process(&mut self, inputs: Map, ctx: &Context) -> Result<Map, NodeError> {
        let given = Args(&inputs).text("thread_id");
        let id = if given.trim().is_empty() {
            let text = format!("thread:{}:{}:{}", ctx.job_id, ctx.node_id, ctx.invocation);
            let digest = blake3::hash(text.as_bytes());
            let bytes: Vec<u8> = digest.as_bytes().iter().take(16).copied().collect();
            // Version 8 is for ids that are made in a way of one's own.
            uuid::Uuid::from_slice(&bytes)
                .map(|id| {
                    uuid::Builder::from_custom_bytes(*id.as_bytes())
                        .into_uuid()
                        .to_string()
                })
                .unwrap_or_default()
        } else {
            given.trim().to_owned()
        };
        Ok(one("thread_id", id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::nodes::testing::process;

    #[tokio::test]
    async fn a_thread_keeps_its_id_or_gets_one() {
        let ty = "nodetool.agents.CreateThread";
        assert_eq!(
            process(ty, json!({"thread_id": " t1 "})).await.expect("id"),
            json!({"thread_id": "t1"})
        );
        let made = process(ty, json!({"thread_id": ""})).await.expect("id");
        assert_eq!(made["thread_id"].as_str().map(str::len), Some(36));
        assert_eq!(made, process(ty, json!({})).await.expect("id"));
    }
}
