//! The services behind the gateway, as generated clients over whatever transport the process joins them by.

use std::future::Future;
use std::time::Duration;

use atelier_common::channel::Transport;
use atelier_common::component::{BuildError, Peers};
use atelier_common::identity::{Caller, Signer};
use atelier_proto::MAX_MESSAGE_BYTES;
use atelier_proto::asset::v1::asset_service_client::AssetServiceClient;
use atelier_proto::kernel::v1::job_service_client::JobServiceClient;
use atelier_proto::kernel::v1::node_service_client::NodeServiceClient;
use atelier_proto::kernel::v1::workflow_service_client::WorkflowServiceClient;
use atelier_proto::provider::v1::provider_service_client::ProviderServiceClient;
use atelier_proto::tracker::v1::budget_service_client::BudgetServiceClient;
use atelier_proto::tracker::v1::generation_service_client::GenerationServiceClient;
use tonic::{Request, Response, Status};

use crate::error::Error;

/// The generated clients, and how a caller is made known to them.
#[derive(Clone)]
pub(crate) struct Clients {
    jobs: JobServiceClient<Transport>,
    nodes: NodeServiceClient<Transport>,
    workflows: WorkflowServiceClient<Transport>,
    models: ProviderServiceClient<Transport>,
    ledger: GenerationServiceClient<Transport>,
    budgets: BudgetServiceClient<Transport>,
    assets: AssetServiceClient<Transport>,
    signer: Signer,
    timeout: Duration,
}

impl Clients {
    pub(crate) fn new(peers: &Peers, signer: Signer, timeout: Duration) -> Result<Self, BuildError> {
        let (kernel, provider) = (peers.get("kernel")?, peers.get("provider")?);
        let (tracker, asset) = (peers.get("tracker")?, peers.get("asset")?);
        Ok(Self {
            jobs: JobServiceClient::new(kernel.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
            workflows: WorkflowServiceClient::new(kernel.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
            nodes: NodeServiceClient::new(kernel).max_decoding_message_size(MAX_MESSAGE_BYTES),
            models: ProviderServiceClient::new(provider).max_decoding_message_size(MAX_MESSAGE_BYTES),
            budgets: BudgetServiceClient::new(tracker.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES),
            ledger: GenerationServiceClient::new(tracker).max_decoding_message_size(MAX_MESSAGE_BYTES),
            assets: AssetServiceClient::new(asset).max_decoding_message_size(MAX_MESSAGE_BYTES),
            signer,
            timeout,
        })
    }

    pub(crate) fn jobs(&self) -> JobServiceClient<Transport> {
        self.jobs.clone()
    }

    pub(crate) fn nodes(&self) -> NodeServiceClient<Transport> {
        self.nodes.clone()
    }

    pub(crate) fn workflows(&self) -> WorkflowServiceClient<Transport> {
        self.workflows.clone()
    }

    pub(crate) fn models(&self) -> ProviderServiceClient<Transport> {
        self.models.clone()
    }

    pub(crate) fn ledger(&self) -> GenerationServiceClient<Transport> {
        self.ledger.clone()
    }

    pub(crate) fn budgets(&self) -> BudgetServiceClient<Transport> {
        self.budgets.clone()
    }

    pub(crate) fn assets(&self) -> AssetServiceClient<Transport> {
        self.assets.clone()
    }

    /// A request in the name of a caller.
    pub(crate) fn request<T>(&self, caller: &Caller, message: T) -> Request<T> {
        self.signer.attach(Request::new(message), caller)
    }

    /// Waits for an answer, or for the head of a stream, within the limit for calls.
    ///
    /// # Errors
    /// What the service said, or that it said nothing in time.
    pub(crate) async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Error> {
        self.answer_within(self.timeout, call).await
    }

    /// Waits for the answer to a call that may take longer.
    ///
    /// # Errors
    /// What the service said, or that it said nothing in time.
    pub(crate) async fn answer_within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(status.into()),
            Err(_) => Err(Error::Unanswered),
        }
    }
}
