//! Having the media of a committed artifact saved, before anyone sees it.

use std::{sync::Arc, time::Duration};

use atelier_common::{
    channel::Transport,
    identity::{Caller, Signer},
};
use atelier_proto::{
    asset::v1::{CommitGenerationRequest, asset_service_client::AssetServiceClient},
    common::v1::MapValue,
    kernel::v1::{AssetPersistence, GenerationComplete, RunOptions},
    value::{Map, Value},
};
use tonic::{Code, Request};

use super::{
    Identity,
    media::{Learned, pairs},
};
use crate::node::NodeMeta;

/// Tries before an artifact is shown with its media unsaved.
const TRIES: u32 = 6;
/// Pause before the second try; doubles after that.
const PAUSE: Duration = Duration::from_millis(100);

/// Saves media of artifacts through asset-svc, as the run's owner.
#[derive(Clone)]
pub struct Saver {
    assets: AssetServiceClient<Transport>,
    signer: Signer,
    caller: Caller,
}
impl Saver {
    /// A saver for one owner.
    #[must_use]
    pub fn new(assets: AssetServiceClient<Transport>, signer: Signer, caller: Caller) -> Self {
        Self {
            assets,
            signer,
            caller,
        }
    }
    /// Whether an artifact has anything that is to be saved.
    pub(super) fn wanted(&self, options: &RunOptions, meta: Option<&Arc<NodeMeta>>, outputs: &Map) -> bool {
        let Some(meta) = meta.filter(|meta| meta.auto_save_asset) else {
            return false;
        };
        if options.asset_persistence() == AssetPersistence::Temporary {
            return false;
        }
        let text = text_handle(meta)
            .and_then(|handle| outputs.get(handle))
            .and_then(Value::as_str);
        outputs.values().any(has_media) || text.is_some_and(|text| !text.is_empty())
    }
    /// Saves, and puts references in the place of bytes. What cannot be saved after some tries is shown as the node made it,
    /// bytes included, with an error in the service's log: nothing that was made is lost, and the run goes on.
    pub(super) async fn save(
        &self,
        identity: &Identity,
        artifact: &mut GenerationComplete,
        meta: Option<&Arc<NodeMeta>>,
    ) -> Vec<Learned> {
        let before = artifact.outputs.clone().unwrap_or_default();
        let request = CommitGenerationRequest {
            job_id: identity.job_id.clone(),
            node_id: artifact.node_id.clone(),
            node_type: artifact.node_type.clone(),
            index: artifact.index,
            workflow_id: identity.workflow_id.clone(),
            outputs: Some(before.clone()),
            properties: artifact.properties.clone(),
            generation_ids: artifact.generation_ids.clone(),
            text_handle: meta
                .and_then(|meta| text_handle(meta))
                .unwrap_or_default()
                .to_owned(),
        };
        match self.commit(request).await {
            Ok(after) => {
                let learned = pairs(&before, &after);
                artifact.outputs = Some(after);
                learned
            }
            Err(status) => {
                tracing::error!(job_id = identity.job_id, node_id = artifact.node_id, code = ?status.code(),
                    error = status.message(), "an artifact could not be saved");
                Vec::new()
            }
        }
    }
    async fn commit(&self, request: CommitGenerationRequest) -> Result<MapValue, tonic::Status> {
        let mut pause = PAUSE;
        let mut tries = 1;
        loop {
            let call = self.signer.attach(Request::new(request.clone()), &self.caller);
            match self.assets.clone().commit_generation(call).await {
                Ok(response) => return Ok(response.into_inner().outputs.unwrap_or_default()),
                Err(status) if tries < TRIES && may_pass(status.code()) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    tries += 1;
                }
                Err(status) => return Err(status),
            }
        }
    }
}
/// Whether trying again may help.
fn may_pass(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::Cancelled
            | Code::Aborted
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
    )
}
/// The handle whose text is saved: the main output, when it is text.
fn text_handle(meta: &NodeMeta) -> Option<&str> {
    let main = match &meta.primary_output {
        Some(name) => meta.outputs.iter().find(|output| output.name == *name),
        None => meta.outputs.first(),
    }?;
    matches!(main.ty.as_str(), "str" | "text").then_some(main.name.as_str())
}
fn has_media(value: &Value) -> bool {
    match value {
        Value::Media(_) => true,
        Value::List(values) => values.iter().any(has_media),
        Value::Map(map) => map.values().any(has_media),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Bytes(_) => {
            false
        }
    }
}
