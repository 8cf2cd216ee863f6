//! `WorkerService`.

use std::pin::Pin;

use atelier_common::identity::{self, Caller};
use atelier_proto::kernel::v1::{ConnectRequest, ConnectResponse, worker_service_server::WorkerService};
use futures_util::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::workers::{Scope, Workers};

/// Serves streams of workers.
#[derive(Clone)]
pub struct WorkerApi {
    workers: Workers,
    unsigned: bool,
}
impl WorkerApi {
    /// The service for workers with an identity; their types are seen by their user.
    #[must_use]
    pub fn new(workers: Workers) -> Self {
        Self {
            workers,
            unsigned: false,
        }
    }
    /// The service for a loopback listener: a worker without an identity serves the whole deployment.
    #[must_use]
    pub fn unsigned(workers: Workers) -> Self {
        Self {
            workers,
            unsigned: true,
        }
    }
}

#[tonic::async_trait]
impl WorkerService for WorkerApi {
    type ConnectStream = Pin<Box<dyn Stream<Item = Result<ConnectResponse, Status>> + Send>>;

    async fn connect(
        &self,
        request: Request<Streaming<ConnectRequest>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let scope = if self.unsigned && request.extensions().get::<Caller>().is_none() {
            Scope::Deployment
        } else {
            Scope::User(identity::caller(&request)?.user_id.as_str().into())
        };
        let said = self.workers.serve(scope, request.into_inner());
        Ok(Response::new(Box::pin(ReceiverStream::new(said))))
    }
}
