//! provider-svc as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    atelier_common::component::main_of::<atelier_provider::Providers>()
}
