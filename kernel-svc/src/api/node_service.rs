//! `NodeService`.

use atelier_common::identity;
use atelier_proto::kernel::v1::{
    GetNodeTypeRequest, GetNodeTypeResponse, ListNodeTypesRequest, ListNodeTypesResponse, NodeRunner,
    NodeType, Output, Property, node_service_server::NodeService,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use tonic::{Request, Response, Status};

use crate::{
    error::Error,
    node::{InputMeta, NodeMeta, OutputMeta, Runner},
    workers::NodeTypes,
};

/// Most types of a page.
const MAX_PAGE: usize = 2_000;
/// Longest query, in bytes.
const MAX_QUERY: usize = 1_000;

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
        let ListNodeTypesRequest {
            namespace,
            query,
            page_size,
            page_token,
        } = request.into_inner();
        let words = words(query.as_deref().unwrap_or_default())?;
        let after = after(&page_token)?;
        let most = match usize::try_from(page_size).unwrap_or(usize::MAX) {
            0 => MAX_PAGE,
            size => size.min(MAX_PAGE),
        };
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
        let later = |meta: &NodeMeta| after.as_ref().is_none_or(|after| meta.node_type > *after);
        let found = types
            .all()
            .filter(|meta| later(meta) && below(meta) && fits(meta));
        let mut found: Vec<_> = found.collect();
        found.sort_by(|a, b| a.node_type.cmp(&b.node_type));
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| more);
        Ok(Response::new(ListNodeTypesResponse {
            next_page_token: last
                .map(|meta| URL_SAFE_NO_PAD.encode(&meta.node_type))
                .unwrap_or_default(),
            node_types: found.into_iter().map(|meta| to_proto(meta)).collect(),
        }))
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
/// The words of a query.
fn words(query: &str) -> Result<Vec<String>, Error> {
    if query.len() > MAX_QUERY {
        let wrong = format!("must be at most {MAX_QUERY} bytes");
        return Err(Error::InvalidField {
            field: "query",
            wrong,
        });
    }
    let words = query.split(',').map(|word| word.trim().to_lowercase());
    Ok(words.filter(|word| !word.is_empty()).collect())
}
/// The last type of the page before; `None` at the start.
fn after(token: &str) -> Result<Option<String>, Error> {
    let read = || String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok();
    match token {
        "" => Ok(None),
        _ => read().map(Some).ok_or(Error::InvalidPageToken),
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
        dynamic_outputs: meta.dynamic_outputs,
        deprecated: meta.deprecated,
        replaced_by: meta.replaced_by.clone().unwrap_or_default(),
        runner: match meta.runner {
            Runner::BuiltIn => NodeRunner::BuiltIn,
            Runner::Provider => NodeRunner::Provider,
            Runner::Connector => NodeRunner::Connector,
        }
        .into(),
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
