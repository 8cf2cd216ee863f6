//! The services over gRPC: messages in, domain calls, messages out.

mod job_service;
mod node_service;
mod worker_service;
mod workflow_service;

pub use job_service::JobApi;
pub use node_service::NodeApi;
pub use worker_service::WorkerApi;
pub use workflow_service::WorkflowApi;
