//! Stories through the whole of atelier, one a file.

// The stack of all services in one process is one deep future.
#![recursion_limit = "256"]

mod bad_input;
mod cancel;
mod command;
mod console;
mod failure;
mod generate;
mod outside_readers;
mod outside_worker;
mod public_table;
mod public_workflows;
mod restart;
mod saved_workflows;
mod separate;
mod six_images;
mod socket;
mod stand_in;
