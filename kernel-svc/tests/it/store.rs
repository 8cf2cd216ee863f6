//! What a run leaves behind, on both engines: its row, its log, its artifacts; the relay that writes them and the service
//! that serves them.

mod adoption;
mod fakes;
mod inputs;
mod kernel;
mod log;
mod reader;
mod recovery;
mod relay;
mod relay_media;
mod rows;
pub mod scene;
mod service;
mod service_deep;
mod service_queue;
mod service_supervised;
mod suspended;
mod suspended_pushed;
mod workflow_files;
mod workflow_runs;
mod workflows;
