//! From a workflow file to a plan that can run: load, hydrate, bypass, validate, correlate. Everything here
//! is pure: no tasks, no channels, no clock. What runs a plan lives in `run`.

pub mod bypass;
pub mod check;
pub mod control;
pub mod correlation;
pub mod facts;
pub mod hydrate;
pub mod load;
pub mod loops;
pub mod model;
pub mod order;
pub mod plan;
pub mod required;
pub mod types;
pub mod validate;

pub use check::{check, prepare};
pub use load::{LoadOptions, Migration, load};
pub use model::{Edge, HydratedGraph, Node};
