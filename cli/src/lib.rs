//! The `atelier` command.
//!
//! `args.rs` has every flag, `stack.rs` puts all services into one process, `server.rs` finds or starts a server,
//! `client.rs` talks to it; the other files are a command each. All commands talk to the gateway, also to one that this
//! very process started: there is one way in.

pub mod args;
pub mod assets;
pub mod budgets;
pub mod check;
pub mod client;
pub mod costs;
pub mod generate;
pub mod generations;
pub mod jobs;
pub mod nodes;
pub mod print;
pub mod reach;
pub mod run;
pub mod server;
pub mod stack;
pub mod up;
pub mod workflows;

use std::process::ExitCode;

use args::{Cli, Command};

/// It happened.
pub const OK: u8 = 0;
/// It did not happen.
pub const FAILED: u8 = 1;
/// A file cannot be read.
pub const UNREADABLE: u8 = 2;
/// Somebody pressed Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Does what the command line says.
///
/// # Errors
/// What went wrong, for people.
pub async fn main(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { place, command } = cli;
    let code = match command {
        Command::Up(up) => Box::pin(up::up(&place, &up)).await?,
        command => {
            let server = Box::pin(server::Server::find_or_start(&place)).await?;
            let outcome = match command {
                Command::Up(_) => Ok(OK),
                Command::Run(run) => run::run(&server.client(), run).await,
                Command::Generate(generate) => {
                    generate::generate(&server.client(), generate, server.goes_on()).await
                }
                Command::Check(check) => check::check(&server.client(), check).await,
                Command::Workflows(workflows) => workflows::workflows(&server.client(), workflows).await,
                Command::Nodes(nodes) => nodes::nodes(&server.client(), nodes).await,
                Command::Jobs(jobs) => jobs::jobs(&server.client(), jobs).await,
                Command::Generations(generations) => {
                    generations::generations(&server.client(), generations).await
                }
                Command::Costs(costs) => costs::costs(&server.client(), *costs).await,
                Command::Budgets(budgets) => budgets::budgets(&server.client(), budgets).await,
                Command::Assets(assets) => assets::assets(&server.client(), assets).await,
            };
            server.stop().await;
            outcome?
        }
    };
    Ok(ExitCode::from(code))
}
