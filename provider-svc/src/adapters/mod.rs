//! Adapters to providers, one folder each. They know nothing of rows, callers and messages.

pub mod fal;
mod jobs;
pub mod kie;
pub mod openai;
pub mod sketch;
mod web;
