//! Kernel specification 9: the known failures of such kernels, a short test for each by its id. Those of the
//! supervisor (B-50, B-51, B-66, B-67) are with its tests.

mod ends;
mod flow;
mod graphs;
mod streams;
