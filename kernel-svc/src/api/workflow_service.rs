//! `WorkflowService`.

use atelier_common::identity;
use atelier_proto::kernel::v1::{
    CreateWorkflowRequest, CreateWorkflowResponse, DeleteWorkflowRequest, DeleteWorkflowResponse,
    ExportWorkflowRequest, ExportWorkflowResponse, FileSpelling, FileValues, GetWorkflowRequest,
    GetWorkflowResponse, GetWorkflowVersionRequest, GetWorkflowVersionResponse, ImportWorkflowRequest,
    ImportWorkflowResponse, ListWorkflowVersionsRequest, ListWorkflowVersionsResponse, ListWorkflowsRequest,
    ListWorkflowsResponse, RestoreWorkflowVersionRequest, RestoreWorkflowVersionResponse,
    UpdateWorkflowRequest, UpdateWorkflowResponse, Workflow, workflow_service_server::WorkflowService,
};
use tonic::{Request, Response, Status};

use crate::{
    error::Error,
    workflows::{Expected, Saved, Store, read_file, to_proto, version_to_proto, write_file},
};

/// Serves saved workflows.
#[derive(Clone)]
pub struct WorkflowApi(Store);

impl WorkflowApi {
    /// The service over a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self(store)
    }
}
fn whole(saved: Saved) -> Result<Option<Workflow>, Error> {
    to_proto(saved.row, Some(saved.graph)).map(Some)
}

#[tonic::async_trait]
impl WorkflowService for WorkflowApi {
    async fn create_workflow(
        &self,
        request: Request<CreateWorkflowRequest>,
    ) -> Result<Response<CreateWorkflowResponse>, Status> {
        let caller = identity::caller(&request)?;
        let (saved, created) = self.0.create(&caller, request.into_inner()).await?;
        let workflow = whole(saved)?;
        Ok(Response::new(CreateWorkflowResponse { workflow, created }))
    }
    async fn get_workflow(
        &self,
        request: Request<GetWorkflowRequest>,
    ) -> Result<Response<GetWorkflowResponse>, Status> {
        let caller = identity::caller(&request)?;
        let saved = self.0.get(&caller, &request.get_ref().workflow_id).await?;
        let workflow = whole(saved)?;
        Ok(Response::new(GetWorkflowResponse { workflow }))
    }
    async fn list_workflows(
        &self,
        request: Request<ListWorkflowsRequest>,
    ) -> Result<Response<ListWorkflowsResponse>, Status> {
        let caller = identity::caller(&request)?;
        let page = self.0.list(&caller, request.get_ref()).await?;
        let rows = page.rows.into_iter().map(|row| to_proto(row, None));
        Ok(Response::new(ListWorkflowsResponse {
            workflows: rows.collect::<Result<_, _>>()?,
            next_page_token: page.next,
        }))
    }
    async fn update_workflow(
        &self,
        request: Request<UpdateWorkflowRequest>,
    ) -> Result<Response<UpdateWorkflowResponse>, Status> {
        let caller = identity::caller(&request)?;
        let (saved, changed) = self.0.update(&caller, request.into_inner()).await?;
        let workflow = whole(saved)?;
        Ok(Response::new(UpdateWorkflowResponse { workflow, changed }))
    }
    async fn delete_workflow(
        &self,
        request: Request<DeleteWorkflowRequest>,
    ) -> Result<Response<DeleteWorkflowResponse>, Status> {
        let caller = identity::caller(&request)?;
        let DeleteWorkflowRequest {
            workflow_id,
            expected_etag,
        } = request.into_inner();
        let expected = Expected {
            version: None,
            etag: expected_etag,
        };
        self.0.delete(&caller, &workflow_id, &expected).await?;
        Ok(Response::new(DeleteWorkflowResponse {}))
    }
    async fn list_workflow_versions(
        &self,
        request: Request<ListWorkflowVersionsRequest>,
    ) -> Result<Response<ListWorkflowVersionsResponse>, Status> {
        let caller = identity::caller(&request)?;
        let page = self.0.versions(&caller, request.get_ref()).await?;
        let id = &request.get_ref().workflow_id;
        let rows = page.rows.into_iter();
        Ok(Response::new(ListWorkflowVersionsResponse {
            versions: rows.map(|row| version_to_proto(id, row, false)).collect(),
            next_page_token: page.next,
        }))
    }
    async fn get_workflow_version(
        &self,
        request: Request<GetWorkflowVersionRequest>,
    ) -> Result<Response<GetWorkflowVersionResponse>, Status> {
        let caller = identity::caller(&request)?;
        let GetWorkflowVersionRequest { workflow_id, version } = request.into_inner();
        let (_, found) = self.0.version(&caller, &workflow_id, Some(version)).await?;
        let version = Some(version_to_proto(&workflow_id, found, true));
        Ok(Response::new(GetWorkflowVersionResponse { version }))
    }
    async fn restore_workflow_version(
        &self,
        request: Request<RestoreWorkflowVersionRequest>,
    ) -> Result<Response<RestoreWorkflowVersionResponse>, Status> {
        let caller = identity::caller(&request)?;
        let RestoreWorkflowVersionRequest {
            workflow_id,
            version,
            expected_etag,
        } = request.into_inner();
        let expected = Expected {
            version: None,
            etag: expected_etag,
        };
        let (saved, changed) = self.0.restore(&caller, &workflow_id, version, &expected).await?;
        let workflow = whole(saved)?;
        Ok(Response::new(RestoreWorkflowVersionResponse {
            workflow,
            changed,
        }))
    }
    async fn import_workflow(
        &self,
        request: Request<ImportWorkflowRequest>,
    ) -> Result<Response<ImportWorkflowResponse>, Status> {
        let caller = identity::caller(&request)?;
        let ImportWorkflowRequest {
            file_json,
            workflow_id,
            name,
            idempotency_key,
        } = request.into_inner();
        let draft = read_file(&file_json, name.as_deref())?;
        let saving = self.0.insert(&caller, &workflow_id, &idempotency_key, draft);
        let (saved, created) = saving.await?;
        let workflow = whole(saved)?;
        Ok(Response::new(ImportWorkflowResponse { workflow, created }))
    }
    async fn export_workflow(
        &self,
        request: Request<ExportWorkflowRequest>,
    ) -> Result<Response<ExportWorkflowResponse>, Status> {
        let caller = identity::caller(&request)?;
        let request = request.into_inner();
        let spelling = FileSpelling::try_from(request.spelling).map_err(|_| unknown("spelling"))?;
        let values = FileValues::try_from(request.values).map_err(|_| unknown("values"))?;
        let (row, found) = self
            .0
            .version(&caller, &request.workflow_id, request.version)
            .await?;
        let (workflow, version) = (to_proto(row, None)?, found.version);
        let file_json = write_file(&workflow, version, &found.graph, spelling, values, request.flat)?;
        Ok(Response::new(ExportWorkflowResponse { file_json, version }))
    }
}
fn unknown(field: &'static str) -> Error {
    Error::InvalidField {
        field,
        wrong: "is not one of the known ways".to_owned(),
    }
}
