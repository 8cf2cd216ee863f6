//! Assets: list and look at. Their bytes are in `content.rs`.

use atelier_common::identity::Caller;
use atelier_proto::asset::v1::{Asset as AssetMessage, GetAssetRequest, ListAssetsRequest};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Who;
use crate::error::Error;
use crate::extract::{Path, Query};
use crate::problem::ErrorBody;
use crate::wire::resource::Asset;

/// Which assets to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AssetsQuery {
    /// Only assets of this run.
    pub(crate) job_id: Option<String>,
    /// Only assets of this node.
    pub(crate) node_id: Option<String>,
    /// The kind, for instance `image`, or the whole media type, for instance `image/png`.
    pub(crate) content_type: Option<String>,
    /// Created at or after this instant, or on or after this day.
    pub(crate) since: Option<String>,
    /// Rows of a page, 1 to 500. Default 50.
    pub(crate) limit: Option<i32>,
    /// The `next` of the page before.
    pub(crate) cursor: Option<String>,
}

/// A page of assets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AssetPage {
    /// The assets, newest first.
    assets: Vec<Asset>,
    /// The cursor to the next page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists assets, newest first.
#[utoipa::path(
    get, path = "/assets", operation_id = "listAssets", tag = "assets", params(AssetsQuery),
    responses(
        (status = 200, description = "A page", body = AssetPage),
        (status = 400, description = "A parameter is wrong", body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<AssetsQuery>,
) -> Result<Json<AssetPage>, Error> {
    page(&app, &caller, query).await.map(Json)
}

/// A page of assets, for every surface.
pub(crate) async fn page(app: &App, caller: &Caller, query: AssetsQuery) -> Result<AssetPage, Error> {
    let request = ListAssetsRequest {
        page_size: super::page_size(query.limit)?,
        page_token: query.cursor.unwrap_or_default(),
        job_id: query.job_id,
        node_id: query.node_id,
        content_type: query.content_type,
        since: super::instant("since", query.since.as_deref())?,
    };
    let mut assets = app.clients.assets();
    let page = app
        .clients
        .answer(assets.list_assets(app.clients.request(caller, request)))
        .await?;
    let assets = page
        .assets
        .into_iter()
        .map(|asset| Asset::new(asset, &caller.user_id))
        .collect();
    Ok(AssetPage {
        assets,
        next: super::next(page.next_page_token),
    })
}

/// One asset.
#[utoipa::path(
    get, path = "/assets/{id}", operation_id = "getAsset", tag = "assets",
    params(("id" = String, Path, description = "The asset")),
    responses(
        (status = 200, description = "The asset", body = Asset),
        (status = 404, description = "No such asset", body = ErrorBody),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Who(caller): Who,
    Path(id): Path<String>,
) -> Result<Json<Asset>, Error> {
    let asset = fetch(&app, &caller, id).await?;
    Ok(Json(Asset::new(asset, &caller.user_id)))
}

/// One asset, for every surface.
pub(crate) async fn fetch(app: &App, caller: &Caller, asset_id: String) -> Result<AssetMessage, Error> {
    let mut assets = app.clients.assets();
    let request = app.clients.request(caller, GetAssetRequest { asset_id });
    Ok(app
        .clients
        .answer(assets.get_asset(request))
        .await?
        .asset
        .unwrap_or_default())
}
