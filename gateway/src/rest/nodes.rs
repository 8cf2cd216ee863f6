//! Node types.

use atelier_common::identity::Caller;
use atelier_proto::kernel::v1::{GetNodeTypeRequest, ListNodeTypesRequest};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{Path, Query};
use crate::problem::ErrorBody;
use crate::wire::resource::NodeType;

/// Which node types to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NodesQuery {
    /// Only types below this namespace.
    pub(crate) namespace: Option<String>,
    /// Only types in whose type, title or description all of these words occur, separated by commas.
    pub(crate) query: Option<String>,
    /// Types of a page, 1 to 2000. Default 2000.
    pub(crate) limit: Option<u32>,
    /// The `next` of the page before.
    pub(crate) cursor: Option<String>,
}

/// Node types.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// The types.
    nodes: Vec<NodeType>,
    /// The cursor to the next page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists node types.
#[utoipa::path(
    get, path = "/nodes", operation_id = "listNodeTypes", tag = "nodes", params(NodesQuery),
    responses((status = 200, description = "The types", body = NodeList))
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<NodesQuery>,
) -> Result<Json<NodeList>, Error> {
    all(&app, &caller, query).await.map(Json)
}

/// Node types, for every surface.
pub(crate) async fn all(app: &App, caller: &Caller, query: NodesQuery) -> Result<NodeList, Error> {
    let request = ListNodeTypesRequest {
        namespace: query.namespace,
        query: query.query,
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let mut nodes = app.clients.nodes();
    let answer = app
        .clients
        .answer(nodes.list_node_types(app.clients.request(caller, request)))
        .await?;
    Ok(NodeList {
        nodes: answer.node_types.into_iter().map(Into::into).collect(),
        next: super::next(answer.next_page_token),
    })
}

/// One node type.
#[utoipa::path(
    get, path = "/nodes/{type}", operation_id = "getNodeType", tag = "nodes",
    params(("type" = String, Path, description = "The dotted type")),
    responses(
        (status = 200, description = "The type", body = NodeType),
        (status = 404, description = "No such type", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(node_type): Path<String>,
) -> Result<Json<NodeType>, Error> {
    one(&app, &caller, node_type).await.map(Json)
}

/// One node type, for every surface.
pub(crate) async fn one(app: &App, caller: &Caller, node_type: String) -> Result<NodeType, Error> {
    let mut nodes = app.clients.nodes();
    let request = app.clients.request(caller, GetNodeTypeRequest { node_type });
    let answer = app.clients.answer(nodes.get_node_type(request)).await?;
    Ok(answer.node_type.unwrap_or_default().into())
}
