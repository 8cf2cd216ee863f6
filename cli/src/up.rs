//! `atelier up`.

use std::io::Write;

use anyhow::{Context, bail};
use atelier_common::{
    failpoint, settings,
    telemetry::{self, Telemetry},
};
use tokio::{net::TcpListener, signal::unix::SignalKind};

use crate::{
    OK,
    args::{Place, Up},
    server::{DataLock, data_folder},
    stack::{Options, Stack},
};

/// Serves until somebody stops it. A second signal ends at once.
///
/// # Errors
/// The address or the data folder is taken, settings are wrong.
pub async fn up(place: &Place, up: &Up) -> anyhow::Result<u8> {
    let _telemetry = logging(place, "info")?;
    let folder = data_folder(place)?;
    let Some(lock) = DataLock::take(&folder)? else {
        bail!(
            "another atelier works on {}; stop it, or name another folder with --data",
            folder.display()
        );
    };
    if !up.listen.ip().is_loopback() {
        bail!(
            "--listen {}: without authentication the server listens on a loopback address only",
            up.listen
        );
    }
    let listener = TcpListener::bind(up.listen)
        .await
        .with_context(|| format!("cannot listen on {}", up.listen))?;
    let mut stop = Stop::new()?;
    let options = Options {
        data: lock.folder().to_owned(),
        config: place.config.clone(),
        listener,
        overrides: workers(up),
    };
    let stack = Stack::start(options).await?;
    lock.announce(stack.url())?;
    say(&format!(
        "atelier is ready at {} (data in {})",
        stack.url(),
        lock.folder().display()
    ));
    if let Some(address) = stack.workers() {
        say(&format!("workers connect at {address}"));
    }
    stop.asked().await;
    say("stopping; once more ends at once");
    tokio::select! {
        all = stack.stop() => if !all { say("some work had to be left") },
        () = stop.asked() => say("ended at once"),
    }
    drop(lock);
    Ok(OK)
}
/// Where workers connect, as a setting.
fn workers(up: &Up) -> Vec<(String, String)> {
    let key = || "kernel.worker_listen".to_owned();
    up.workers
        .map(|address| (key(), address.to_string()))
        .into_iter()
        .collect()
}
/// Ctrl-C and SIGTERM.
struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}
impl Stop {
    fn new() -> std::io::Result<Self> {
        let interrupt = tokio::signal::unix::signal(SignalKind::interrupt())?;
        Ok(Self {
            interrupt,
            terminate: tokio::signal::unix::signal(SignalKind::terminate())?,
        })
    }
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
/// Says something on stderr.
pub fn say(text: &str) {
    // Nobody reads stderr: nothing to do about it.
    let _ = writeln!(std::io::stderr(), "{text}");
}
/// Starts logging to stderr, with a level for those who did not choose one, and the metrics. Logs until what it returns is
/// dropped.
///
/// # Errors
/// The filter or the settings are wrong.
pub fn logging(place: &Place, level: &str) -> anyhow::Result<Telemetry> {
    let mut settings: telemetry::TelemetrySettings = settings::load(place.config.as_deref())?;
    if let Some(filter) = &place.log {
        settings.log.clone_from(filter);
    } else if settings == telemetry::TelemetrySettings::default() {
        settings.log = settings.log.replacen("info", level, 1);
    }
    let telemetry = telemetry::init("atelier", &settings)?;
    atelier_common::metrics::install();
    if let Some(plan) = settings::variable(failpoint::VARIABLE) {
        failpoint::install(&plan)?;
    }
    Ok(telemetry)
}
