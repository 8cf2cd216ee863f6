//! Stories through the whole of atelier, one a file.

mod bad_input;
mod cancel;
mod command;
mod console;
mod failure;
mod outside_readers;
mod public_table;
mod outside_worker;
mod public_workflows;
mod restart;
mod saved_workflows;
mod separate;
mod six_images;
mod socket;
mod stand_in;
