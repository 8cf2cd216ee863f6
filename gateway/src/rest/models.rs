//! Models of providers.

use atelier_proto::provider::v1::ListModelsRequest;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::Query;
use crate::wire::resource::Model;

/// Which models to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ModelsQuery {
    /// Only this provider.
    provider: Option<String>,
    /// Only models that can do this.
    capability: Option<String>,
}

/// Models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The models, by provider and name.
    models: Vec<Model>,
}

/// Lists models.
#[utoipa::path(
    get, path = "/models", operation_id = "listModels", tag = "models", params(ModelsQuery),
    responses((status = 200, description = "The models", body = ModelList))
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<ModelsQuery>,
) -> Result<Json<ModelList>, Error> {
    let request = ListModelsRequest {
        provider: query.provider,
        capability: query.capability,
    };
    let mut models = app.clients.models();
    let answer = app
        .clients
        .answer(models.list_models(app.clients.request(&caller, request)))
        .await?;
    Ok(Json(ModelList {
        models: answer.models.into_iter().map(Into::into).collect(),
    }))
}
