//! Types that need something from outside that is not there.

use std::sync::Arc;

use async_trait::async_trait;
use atelier_proto::value::Map;

use crate::{
    node::{Context, Executor, NodeError, NodeMeta, Offers},
    run::{Inputs, Outputs},
};

/// Fails every run with what is missing.
pub(super) struct Missing(pub Arc<NodeMeta>);
impl Missing {
    fn error(&self) -> NodeError {
        let NodeMeta {
            node_type,
            required_settings,
            ..
        } = self.0.as_ref();
        let keys = match required_settings.as_slice() {
            [] => String::new(),
            [one] => format!(" that has the setting {one}"),
            many => format!(" that has the settings {}", many.join(" and ")),
        };
        NodeError {
            secret_key: required_settings.first().cloned(),
            ..NodeError::new(format!(
                "{node_type} needs a connector: no worker{keys} declares this node type"
            ))
            .code("missing_connector")
        }
    }
}
#[async_trait]
impl Executor for Missing {
    fn offers(&self) -> Offers {
        Offers {
            stream: false,
            run: self.0.streaming_input == Some(true),
        }
    }
    async fn process(&mut self, _inputs: Map, _ctx: &Context) -> Result<Map, NodeError> {
        Err(self.error())
    }
    async fn run(
        &mut self,
        _inputs: &mut Inputs<'_>,
        _outputs: &mut Outputs<'_>,
        _ctx: &Context,
    ) -> Result<(), NodeError> {
        Err(self.error())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::nodes::testing::process;

    #[rstest]
    #[case(
        "search.google.GoogleSearch",
        "search.google.GoogleSearch needs a connector: no worker that has the setting SERPAPI_API_KEY declares this node type"
    )]
    #[case(
        "lib.s3.ListBuckets",
        "lib.s3.ListBuckets needs a connector: no worker that has the settings AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY declares this node type"
    )]
    #[case(
        "lib.comfy.RunWorkflow",
        "lib.comfy.RunWorkflow needs a connector: no worker declares this node type"
    )]
    #[tokio::test]
    async fn what_is_missing_is_said_in_one_sentence(#[case] node_type: &str, #[case] expected: &str) {
        let error = process(node_type, json!({})).await.expect_err("a fault");
        assert_eq!(error.message, expected);
        assert_eq!(error.code.as_deref(), Some("missing_connector"));
    }
}
