//! The `main` of a service's binary.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinHandle};
use uuid::Uuid;

use super::{
    BuildError, Component, Deps, ProcessSettings, RunError, serve_admin, serve_grpc_within, shutdown_signal,
};
use crate::clock::Clock;
use crate::health::{Gate, Health};
use crate::settings::{self, Loader};
use crate::tasks::Tasks;
use crate::telemetry::{self, TelemetrySettings};
use crate::{egress, failpoint, metrics};

#[derive(Parser)]
#[command(version)]
struct Args {
    /// Address to serve gRPC on, e.g. 127.0.0.1:7003 [default: process.listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE", env = "ATELIER_CONFIG")]
    config: Option<PathBuf>,
    /// Print the settings that hold, and where each comes from, and exit
    #[arg(long)]
    print_config: bool,
}

/// Runs a component as a process: settings → telemetry → build → listen → ready → run → stop accepting → drain. The
/// first SIGINT or SIGTERM starts the end, a second one ends at once. Exit codes: 0 told to stop, 1 failed, 2 wrong
/// flags or settings, 130 ended by a second signal.
pub fn main_of<C: Component>() -> ExitCode {
    let args = Args::command()
        .name(C::NAME)
        .try_get_matches()
        .and_then(|matches| Args::from_arg_matches(&matches));
    let args = match args {
        Ok(args) => args,
        Err(error) => {
            // Help goes to standard output and is no failure; clap knows which is which.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut loader = Loader::new().file(args.config.as_deref());
    if let Some(listen) = args.listen {
        loader = loader.flag("--listen", "process.listen", listen.to_string());
    }
    let loaded = loader.load::<ProcessSettings>().and_then(|process| {
        Ok((
            process,
            loader.load::<TelemetrySettings>()?,
            loader.load::<C::Settings>()?,
        ))
    });
    let (process, log, own) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return complain(2, C::NAME, &error),
    };
    if args.print_config {
        let page = format!("{}\n{}\n{}", process.print(), log.print(), own.print());
        return match std::io::stdout().write_all(page.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let telemetry = match telemetry::init(C::NAME, &log.settings) {
        Ok(telemetry) => telemetry,
        Err(error) => return complain(2, C::NAME, &error),
    };
    if let Some(plan) = settings::variable(failpoint::VARIABLE)
        && let Err(error) = failpoint::install(&plan)
    {
        return complain(2, C::NAME, &error);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(1, C::NAME, &error),
    };
    let ended = runtime.block_on(supervise::<C>(process.settings, own.settings));
    runtime.shutdown_background();
    let code = match ended {
        Ok(code) => code,
        Err(error) => complain(1, C::NAME, error.as_ref()),
    };
    drop(telemetry);
    code
}

/// Tells a failure on standard error: the log may not be there yet, or be filtered.
fn complain(code: u8, name: &str, error: &dyn std::error::Error) -> ExitCode {
    let line = format!("{name}: {}\n", telemetry::chain(error));
    let _ = std::io::stderr().write_all(line.as_bytes());
    ExitCode::from(code)
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Does the work, with an ear for signals.
async fn supervise<C: Component>(process: ProcessSettings, own: C::Settings) -> Result<ExitCode, Failure> {
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
        result = operate::<C>(process, own, tasks.clone()) => result.map(|()| ExitCode::SUCCESS),
        second = signals => {
            second?;
            tracing::warn!("second signal, ending at once");
            Ok(ExitCode::from(130))
        }
    }
}

async fn operate<C: Component>(
    process: ProcessSettings,
    own: C::Settings,
    tasks: Tasks,
) -> Result<(), Failure> {
    let health = Health::new();
    health.set("process", Gate::NotReady("starting".to_owned()));
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
    std::fs::create_dir_all(&deps.data_dir).map_err(|error| {
        BuildError::new(
            format!("cannot make the data folder {}", deps.data_dir.display()),
            error,
        )
    })?;
    let Some(built) = tasks.token().run_until_cancelled(C::build(own, &deps)).await else {
        return Ok(());
    };
    let component = built?;

    let listener = bind(process.listen, "grpc").await?;
    let admin = match process.admin_listen {
        Some(address) => Some(bind(address, "http").await?),
        None => None,
    };
    let routes = component.routes();
    let serving = tasks.spawn("grpc", {
        let (deps, drain) = (deps.clone(), process.drain);
        async move { serve_grpc_within(routes, &[C::descriptor()], listener, &deps, drain).await }
    });
    if let Some(listener) = admin {
        let (health, tasks) = (health.clone(), tasks.clone());
        deps.tasks.spawn("admin", async move {
            if let Err(error) = serve_admin(listener, health, &tasks).await {
                tracing::error!(error = telemetry::chain(&error), "the page for operators is gone");
            }
        });
    }
    let running = tasks.spawn(C::NAME, {
        let tasks = tasks.clone();
        async move { component.run(&tasks).await }
    });
    health.set("process", Gate::Ready);
    tracing::info!(service = C::NAME, instance = %deps.instance, "ready");

    let withdraw = tasks.spawn_background("withdraw", {
        let (health, tasks) = (health.clone(), tasks.clone());
        async move {
            tasks.stopped().await;
            health.set("process", Gate::NotReady("stopping".to_owned()));
        }
    });
    // Whichever ends first, told or not, ends the other.
    let outcome = until_both(&tasks, serving, running).await;
    let _ = withdraw.await;
    tasks.drain(process.drain).await;
    Ok(outcome?)
}

type Part = JoinHandle<Result<(), RunError>>;

async fn until_both(tasks: &Tasks, mut serving: Part, mut running: Part) -> Result<(), RunError> {
    let died = |error: JoinError| RunError::new("a part of the process died", error);
    let (first, other) = tokio::select! {
        first = &mut serving => (first, running),
        first = &mut running => (first, serving),
    };
    let early = !tasks.stopping();
    tasks.stop();
    let second = other.await;
    first.map_err(died)??;
    second.map_err(died)??;
    if early {
        Err(RunError::failed(
            "a part of the process ended without being told to",
        ))
    } else {
        Ok(())
    }
}

async fn bind(address: SocketAddr, kind: &'static str) -> Result<TcpListener, BuildError> {
    let failed = |error: std::io::Error| BuildError::new(format!("cannot listen on {address}"), error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tracing::info!(kind, address = %bound, "listening");
    Ok(listener)
}
