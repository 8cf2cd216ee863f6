//! The tables of this service.

pub mod asset;
