//! What a run runs: the graph of its request, or the graph of a saved workflow, copied at the start.

use atelier_common::identity::Caller;
use atelier_proto::common::v1::{MapEntry, MapValue};
use prost::Message;

use super::Jobs;
use crate::error::Error;

/// The graph of a run and where it is from.
pub(super) struct Source {
    /// The graph, JSON.
    pub(super) graph: String,
    /// Parameters: those of the request over those that the workflow states.
    pub(super) params: MapValue,
    /// The version of the saved workflow.
    pub(super) version: Option<i64>,
    /// What was asked for, when it was not the graph: a workflow that was saved since does not make a repeated request
    /// another one.
    pub(super) asked: Option<String>,
}
impl Jobs {
    /// Finds what a request asks to run.
    ///
    /// # Errors
    /// [`Error::WorkflowNotFound`], [`Error::VersionNotFound`], a request with neither graph nor workflow; store errors.
    pub(super) async fn source(
        &self,
        caller: &Caller,
        job_id: &str,
        graph: Option<String>,
        workflow: Option<(&str, Option<i64>)>,
        params: MapValue,
    ) -> Result<Source, Error> {
        let (id, version) = match (graph, workflow) {
            (Some(graph), _) => {
                return Ok(Source {
                    graph,
                    params,
                    version: None,
                    asked: None,
                });
            }
            (None, Some(workflow)) => workflow,
            (None, None) => {
                return Err(Error::InvalidField {
                    field: "graph_json",
                    wrong: "a graph or a workflow is needed".to_owned(),
                });
            }
        };
        let wanted = version.map_or_else(|| "newest".to_owned(), |version| version.to_string());
        let params_hash = blake3::hash(&params.encode_to_vec()).to_hex();
        let asked = Some(format!("workflow/{wanted}/{params_hash}"));
        // The run that has the id holds what it was started with, also when its workflow is gone.
        if !job_id.is_empty()
            && let Ok(row) = self.store.get(caller, job_id).await
            && row.workflow_version.is_some()
        {
            return Ok(Source {
                graph: row.graph,
                params: MapValue::decode(row.params.as_slice()).map_err(|_| Error::DamagedLog)?,
                version: row.workflow_version,
                asked,
            });
        }
        let (workflow, found) = self.workflows().version(caller, id, version).await?;
        let stated = MapValue::decode(workflow.params.as_slice()).map_err(|_| Error::DamagedLog)?;
        Ok(Source {
            graph: found.graph,
            params: over(stated, params),
            version: Some(found.version),
            asked,
        })
    }
}
/// Parameters of a request over those that a workflow states.
fn over(stated: MapValue, given: MapValue) -> MapValue {
    let mut entries: Vec<MapEntry> = stated.entries;
    entries.retain(|entry| given.entries.iter().all(|other| other.key != entry.key));
    entries.extend(given.entries);
    MapValue { entries }
}
