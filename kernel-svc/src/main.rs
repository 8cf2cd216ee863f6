//! kernel-svc alone.

fn main() -> std::process::ExitCode {
    atelier_common::component::main_of::<atelier_kernel::Kernel>()
}
