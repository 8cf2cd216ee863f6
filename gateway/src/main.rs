//! The gateway as a process of its own, beside services that have addresses.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use atelier_common::clock::Clock;
use atelier_common::component::{BuildError, Deps, ProcessSettings, shutdown_signal};
use atelier_common::health::{Gate, Health};
use atelier_common::settings::Loader;
use atelier_common::tasks::Tasks;
use atelier_common::telemetry::{self, TelemetrySettings};
use atelier_common::{egress, metrics};
use atelier_gateway::{Gateway, Settings};
use clap::Parser;
use tokio::net::TcpListener;
use uuid::Uuid;

#[derive(Parser)]
#[command(name = Gateway::NAME, version)]
struct Args {
    /// Address to serve HTTP on [default: gateway.listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE", env = "ATELIER_CONFIG")]
    config: Option<PathBuf>,
    /// Print the settings that hold, and where each comes from, and exit
    #[arg(long)]
    print_config: bool,
}

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match start(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            let line = format!("{}: {}\n", Gateway::NAME, telemetry::chain(error.as_ref()));
            // With standard error gone there is nobody left to tell.
            let _ = std::io::stderr().write_all(line.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> Result<ExitCode, Failure> {
    let mut loader = Loader::new().file(args.config.as_deref());
    if let Some(listen) = args.listen {
        loader = loader.flag("--listen", "gateway.listen", listen.to_string());
    }
    let process = loader.load::<ProcessSettings>()?;
    let log = loader.load::<TelemetrySettings>()?;
    let own = loader.load::<Settings>()?;
    if args.print_config {
        let page = format!("{}\n{}\n{}", process.print(), log.print(), own.print());
        std::io::stdout().write_all(page.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let telemetry = telemetry::init(Gateway::NAME, &log.settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(supervise(process.settings, own.settings));
    runtime.shutdown_background();
    drop(telemetry);
    ended
}

/// Does the work, with an ear for signals: the first one starts the end, a second one ends at once.
async fn supervise(process: ProcessSettings, own: Settings) -> Result<ExitCode, Failure> {
    egress::install_crypto();
    metrics::install();
    let tasks = Tasks::new();
    let signals = async {
        let signal = shutdown_signal().await?;
        tracing::info!(signal, "stopping");
        tasks.stop();
        shutdown_signal().await
    };
    tokio::select! {
        result = operate(process, own, &tasks) => result.map(|()| ExitCode::SUCCESS),
        second = signals => {
            second?;
            tracing::warn!("second signal, ending at once");
            Ok(ExitCode::from(130))
        }
    }
}

async fn operate(process: ProcessSettings, own: Settings, tasks: &Tasks) -> Result<(), Failure> {
    let health = Health::new();
    let deps = Deps {
        peers: process.peers()?,
        tasks: tasks.clone(),
        health: health.clone(),
        signer: process.signer()?,
        clock: Clock::system(),
        instance: Uuid::now_v7(),
        data_dir: process.data_dir.clone(),
        sole_process: process.sole_process,
    };
    let listen = own.listen;
    let gateway = Gateway::build(own, &deps)?;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| BuildError::new(format!("cannot listen on {listen}"), error))?;
    health.set("process", Gate::Ready);
    tracing::info!(service = Gateway::NAME, instance = %deps.instance, "ready");
    gateway.serve(listener, tasks).await?;
    tasks.drain(process.drain).await;
    Ok(())
}
