//! The ways in which a node is executed, one file each. `keyed` is what the buffered and the streamed mode
//! share: one invocation for each key that is ready.

mod buffered;
mod controlled;
pub(crate) mod external;
mod keyed;
mod looping;
mod stream_input;
mod streamed;
mod trigger;
