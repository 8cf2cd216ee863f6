//! Adapters to providers, one folder each. They know nothing of rows, callers and messages.

pub mod openai;
pub mod sketch;
