//! The asset service as a process of its own.

fn main() -> std::process::ExitCode {
    atelier_common::component::main_of::<atelier_asset::Assets>()
}
