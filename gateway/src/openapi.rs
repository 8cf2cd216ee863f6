//! The routes and their description, from the same annotations; so what is described is what is served.

use axum::Router;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::rest::{
    assets, budgets, check, content, costs, escalations, field, files, generate, generations, jobs, models,
    nodes, probes, reach, storage, versions, workflows,
};
use crate::sse;

/// What the annotations of the handlers do not say.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "atelier",
        description = "Runs workflows and media generations, keeps every artifact, and says what became of every call \
            to a provider. Errors have one shape; times are ISO 8601 in UTC; money is decimal text, null while unknown.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(storage::get),
    components(schemas(sse::EventFrame)),
    tags(
        (name = "jobs", description = "Runs and their events"),
        (name = "workflows", description = "Saved workflows and their versions"),
        (name = "generations", description = "Calls to providers"),
        (name = "costs", description = "What they cost"),
        (name = "budgets", description = "What they may cost"),
        (name = "assets", description = "What came out of them"),
        (name = "nodes", description = "What workflows are made of"),
        (name = "models", description = "What can be asked"),
        (name = "probes", description = "For machines"),
    ),
)]
struct Description;

/// The described routes that need a caller, the probes, and the description of both.
pub(crate) fn described() -> (Router<App>, Router<App>, utoipa::openapi::OpenApi) {
    let resources = OpenApiRouter::new()
        .routes(routes!(jobs::run, jobs::list))
        .routes(routes!(jobs::get))
        .routes(routes!(jobs::cancel))
        .routes(routes!(reach::push))
        .routes(routes!(reach::control))
        .routes(routes!(reach::resume))
        .routes(routes!(workflows::create, workflows::list))
        .routes(routes!(workflows::get, workflows::update, workflows::delete))
        .routes(routes!(workflows::run))
        .routes(routes!(versions::list))
        .routes(routes!(versions::get))
        .routes(routes!(versions::restore))
        .routes(routes!(files::import))
        .routes(routes!(files::export))
        .routes(routes!(escalations::decide))
        .routes(routes!(sse::events))
        .routes(routes!(generate::run, generations::list))
        .routes(routes!(generations::get))
        .routes(routes!(generations::cancel))
        .routes(routes!(generations::wait))
        .routes(routes!(generations::sweep))
        .routes(routes!(costs::get))
        .routes(routes!(budgets::set, budgets::list))
        .routes(routes!(budgets::get, budgets::delete))
        .routes(routes!(assets::list))
        .routes(routes!(assets::get))
        .routes(routes!(content::get))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::get))
        .routes(routes!(models::list))
        .routes(routes!(check::check));
    let (probes, probes_described) = OpenApiRouter::new()
        .routes(routes!(probes::live))
        .routes(routes!(probes::ready))
        .routes(routes!(probes::metrics))
        .split_for_parts();
    let (router, mut description) = OpenApiRouter::with_openapi(Description::openapi())
        .nest("/api/v1", resources)
        .split_for_parts();
    description.merge(probes_described);
    (
        router
            .route("/api/storage/{*key}", get(storage::get))
            .merge(field::routes()),
        probes,
        description,
    )
}

/// The description as it is kept in the repository.
#[must_use]
pub fn json() -> String {
    let (_, _, description) = described();
    let mut text = description.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
