//! Kernel specification 8.7: a supervisor decides what is to become of failed invocations.

mod bounds;
mod effects;
mod scene;
mod secrets;
