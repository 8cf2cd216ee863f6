//! The contract of provider-svc, translated: proto in, seam call, proto out.

use std::pin::Pin;

use atelier_common::identity;
use atelier_proto::provider::v1::provider_service_server::ProviderService;
use atelier_proto::provider::v1::{
    CancelGenerationRequest, CancelGenerationResponse, ListModelsRequest, ListModelsResponse,
    ReconcileGenerationRequest, ReconcileGenerationResponse, RunGenerationRequest, RunGenerationResponse,
};
use futures_util::Stream;
use tonic::{Request, Response, Status};

use crate::error::Error;
use crate::provider::Capability;
use crate::seam::Seam;
use crate::seam::feed::feed;

/// The gRPC service.
#[derive(Clone)]
pub struct Service {
    seam: Seam,
}
impl Service {
    /// Serves a seam.
    #[must_use]
    pub fn new(seam: Seam) -> Self {
        Self { seam }
    }
}

#[tonic::async_trait]
impl ProviderService for Service {
    type RunGenerationStream = Pin<Box<dyn Stream<Item = Result<RunGenerationResponse, Status>> + Send>>;

    async fn run_generation(
        &self,
        request: Request<RunGenerationRequest>,
    ) -> Result<Response<Self::RunGenerationStream>, Status> {
        let caller = identity::caller(&request)?;
        let (writer, reader) = feed();
        self.seam.start(caller, request.into_inner(), writer).await?;
        Ok(Response::new(Box::pin(reader)))
    }

    async fn cancel_generation(
        &self,
        request: Request<CancelGenerationRequest>,
    ) -> Result<Response<CancelGenerationResponse>, Status> {
        let caller = identity::caller(&request)?;
        let CancelGenerationRequest {
            generation_id,
            job_id,
        } = request.into_inner();
        let answer = match job_id.filter(|id| !id.is_empty()) {
            Some(job_id) => self.seam.cancel_job(&caller, &job_id).await?,
            None => self.seam.cancel(&caller, &generation_id).await?,
        };
        Ok(Response::new(answer))
    }

    async fn reconcile_generation(
        &self,
        request: Request<ReconcileGenerationRequest>,
    ) -> Result<Response<ReconcileGenerationResponse>, Status> {
        let caller = identity::caller(&request)?;
        let ReconcileGenerationRequest { generation_id } = request.into_inner();
        let answer = self.seam.reconcile(&caller, &generation_id).await?;
        Ok(Response::new(answer))
    }

    async fn list_models(
        &self,
        request: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        identity::caller(&request)?;
        let ListModelsRequest { provider, capability } = request.into_inner();
        let (provider, capability) = (
            provider.filter(|id| !id.is_empty()),
            capability.filter(|name| !name.is_empty()),
        );
        if let Some(id) = &provider {
            self.seam.directory().get(id)?;
        }
        let capability = capability
            .map(|name| {
                let unknown = || Error::UnknownCapability {
                    capability: name.clone(),
                    who: "no provider".to_owned(),
                };
                Capability::parse(&name).ok_or_else(unknown)
            })
            .transpose()?;
        let models = self
            .seam
            .directory()
            .models(provider.as_deref(), capability, self.seam.catalog());
        Ok(Response::new(ListModelsResponse { models }))
    }
}
