//! The process `tracker-svc`.

fn main() -> std::process::ExitCode {
    atelier_common::component::main_of::<atelier_tracker::Tracker>()
}
