//! `atelier`: see [`atelier_cli`].

use std::{io::Write, process::ExitCode};

use atelier_cli::args::Cli;
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let outcome = runtime.block_on(atelier_cli::main(cli));
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    outcome.unwrap_or_else(|error| failed(&error))
}
/// Says what went wrong, with its causes, and nothing else: no backtrace.
fn failed(error: &anyhow::Error) -> ExitCode {
    // A reader of stdout that went away (`| head`) is no failure to talk about.
    if error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
    {
        return ExitCode::SUCCESS;
    }
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let _ = writeln!(std::io::stderr(), "error: {}", causes.join(": "));
    ExitCode::from(atelier_cli::FAILED)
}
