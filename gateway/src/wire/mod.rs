//! The public JSON: frames of the socket and of server-sent events, resources of the REST interface, and how the
//! contracts are turned into them. Nothing here calls a service.

pub(crate) mod frame;
pub(crate) mod resource;
pub(crate) mod value;
pub(crate) mod words;
