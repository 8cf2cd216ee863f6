//! What holds for every graph.

mod accounts;
mod algebra;
mod cancel;
mod graphs;
mod model;
mod timing;
