//! The contracts of atelier and the types that every service shares.
//!
//! What lives here: the generated messages, clients and servers of all five areas; typed ids; [`value::Value`] and its
//! mappings to protobuf, JSON and msgpack; exact money; instants; every error reason, once. What does not: anything that
//! knows how a service works.

pub mod ids;
pub mod money;
pub mod reason;
pub mod time;
pub mod value;

/// Messages that every area shares.
pub mod common {
    /// Version 1.
    #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("atelier.common.v1");
    }
}
/// Assets and their bytes.
pub mod asset {
    /// Version 1.
    #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("atelier.asset.v1");
    }
}
/// The ledger of generations.
pub mod tracker {
    /// Version 1.
    #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("atelier.tracker.v1");
    }
}
/// The seam to providers.
pub mod provider {
    /// Version 1.
    #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("atelier.provider.v1");
    }
}
/// Runs, events and node types.
pub mod kernel {
    /// Version 1.
    #[allow(clippy::all, clippy::pedantic, reason = "generated code")]
    pub mod v1 {
        tonic::include_proto!("atelier.kernel.v1");
    }
}

/// The file descriptor set of all contracts, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/atelier.bin"));

/// Largest message that clients and servers of atelier send or take, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Largest piece of media in one message of a stream, in bytes.
pub const CHUNK_BYTES: usize = 64 * 1024;
