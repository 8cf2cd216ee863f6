//! `NodeService`.

use atelier_common::identity;
use atelier_proto::kernel::v1::{
    GetNodeTypeRequest, GetNodeTypeResponse, ListNodeTypesRequest, ListNodeTypesResponse, NodeType, Output,
    Property, node_service_server::NodeService,
};
use tonic::{Request, Response, Status};

use crate::{
    error::Error,
    node::{InputMeta, NodeMeta, OutputMeta},
    workers::NodeTypes,
};

/// Serves node types.
#[derive(Clone)]
pub struct NodeApi(NodeTypes);

impl NodeApi {
    /// The service over the types of each user.
    #[must_use]
    pub fn new(types: NodeTypes) -> Self {
        Self(types)
    }
}

#[tonic::async_trait]
impl NodeService for NodeApi {
    async fn list_node_types(
        &self,
        request: Request<ListNodeTypesRequest>,
    ) -> Result<Response<ListNodeTypesResponse>, Status> {
        let types = self.0.of(&identity::caller(&request)?.user_id);
        let ListNodeTypesRequest { namespace, query } = request.into_inner();
        let words: Vec<String> = query
            .unwrap_or_default()
            .split(',')
            .map(|word| word.trim().to_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
        let below = |meta: &NodeMeta| {
            namespace.as_deref().is_none_or(|space| {
                meta.node_type
                    .strip_prefix(space)
                    .is_some_and(|rest| space.is_empty() || rest.starts_with('.'))
            })
        };
        let fits = |meta: &NodeMeta| {
            let text = format!("{} {} {}", meta.node_type, meta.title, meta.description).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        let mut node_types: Vec<NodeType> = types
            .all()
            .filter(|meta| below(meta) && fits(meta))
            .map(|meta| to_proto(meta))
            .collect();
        node_types.sort_by(|a, b| a.node_type.cmp(&b.node_type));
        Ok(Response::new(ListNodeTypesResponse { node_types }))
    }
    async fn get_node_type(
        &self,
        request: Request<GetNodeTypeRequest>,
    ) -> Result<Response<GetNodeTypeResponse>, Status> {
        let types = self.0.of(&identity::caller(&request)?.user_id);
        let node_type = request.into_inner().node_type;
        let meta = types.meta(&node_type).ok_or(Error::NodeTypeNotFound(node_type))?;
        Ok(Response::new(GetNodeTypeResponse {
            node_type: Some(to_proto(meta)),
        }))
    }
}
fn to_proto(meta: &NodeMeta) -> NodeType {
    NodeType {
        node_type: meta.node_type.clone(),
        title: meta.title.clone(),
        description: meta.description.clone(),
        namespace: meta
            .node_type
            .rsplit_once('.')
            .map(|(space, _)| space.to_owned())
            .unwrap_or_default(),
        properties: meta.inputs.iter().map(property).collect(),
        outputs: meta.outputs.iter().map(output).collect(),
        streaming_input: meta.streaming_input.unwrap_or(false),
        streaming_output: meta.streaming_output.unwrap_or(false),
        controlled: meta.controlled.unwrap_or(false),
        join: meta.join.unwrap_or(false),
        dynamic_inputs: meta.dynamic_inputs,
        auto_save_asset: meta.auto_save_asset,
        primary_output: meta
            .primary_output
            .clone()
            .or_else(|| meta.outputs.first().map(|output| output.name.clone()))
            .unwrap_or_default(),
        required_settings: meta.required_settings.clone(),
    }
}
fn property(input: &InputMeta) -> Property {
    let InputMeta {
        name,
        ty,
        default,
        required,
        description,
        min,
        max,
        values,
    } = input;
    Property {
        name: name.clone(),
        r#type: ty.clone(),
        default_value: default.as_ref().map(Into::into),
        required: *required,
        description: description.clone(),
        min: *min,
        max: *max,
        values: values.iter().map(Into::into).collect(),
    }
}
fn output(output: &OutputMeta) -> Output {
    let OutputMeta { name, ty, stream } = output;
    Output {
        name: name.clone(),
        r#type: ty.clone(),
        stream: *stream,
    }
}
