//! Every flag of `atelier`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

mod ledger;
mod make;
mod saved;

pub use ledger::{Budgets, Calls, Costs, CostsCommand, Group, Period, Scope, SetBudget, Unpriced};
pub use make::{Generate, Kind};
pub use saved::{Export, Import, Nodes, Save, Spelling, Values, Workflows};

/// Runs AI workflows and keeps account of every generation: what ran, what it made, what it cost.
#[derive(Debug, Parser)]
#[command(
    name = "atelier",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 it happened, 1 it did not, 2 the command line is wrong, 130 interrupted.\n\
                  Data goes to stdout, everything else to stderr."
)]
pub struct Cli {
    /// Where things are.
    #[command(flatten)]
    pub place: Place,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Where the server and its data are.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// Folder of the data [default: $XDG_DATA_HOME/atelier, else ~/.local/share/atelier]
    #[arg(long, global = true, env = "ATELIER_DATA", value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Address of a server that is up, for instance http://127.0.0.1:7777. Without it: the server that has the data
    /// folder, else a server inside of this process
    #[arg(long, global = true, env = "ATELIER_SERVER", value_name = "URL")]
    pub server: Option<url::Url>,
    /// Settings file (TOML)
    #[arg(long, global = true, env = "ATELIER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to log on stderr, for instance `info` or `atelier_kernel=debug`
    #[arg(long, global = true, env = "ATELIER_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server: all services in this process, and the web console
    #[command(
        after_help = "Example:\n  atelier up\n  atelier up --listen 127.0.0.1:8080 --data ./studio\n  \
                            atelier up --workers 127.0.0.1:7788"
    )]
    Up(Up),
    /// Run a workflow, from a file or a saved one, and show what it makes and costs
    #[command(after_help = "Examples:\n  atelier run examples/six-images.json\n  \
                            atelier run examples/six-images.json --param idea='a fox in the snow'\n  \
                            atelier run 'Six images'\n  \
                            atelier run examples/branch.json --param night=true --json | tail -n 1")]
    Run(Run),
    /// Make one thing with a model: a picture, speech, a film, music, a 3D model or text
    #[command(after_help = make::EXAMPLES)]
    Generate(Generate),
    /// Say all that is wrong with workflow files, without running them
    #[command(after_help = "Exit codes: 0 all can run, 1 something is wrong, 2 a file cannot be read.")]
    Check(Check),
    /// Saved workflows: save, list, look at, run, bring back an older version
    #[command(subcommand)]
    Workflows(Workflows),
    /// Node types and what they take and give
    #[command(subcommand)]
    Nodes(Nodes),
    /// Runs: list, look at, follow, cancel, reach into
    #[command(subcommand)]
    Jobs(Jobs),
    /// The ledger: every call to a provider
    #[command(subcommand)]
    Generations(Generations),
    /// What it cost
    #[command(
        after_help = "Examples:\n  atelier costs --by day --time-zone Europe/Berlin\n  \
                            atelier costs list --provider fal_ai\n  atelier costs summary --json"
    )]
    Costs(Box<Costs>),
    /// What it may cost: limits that calls are refused by
    #[command(
        subcommand,
        after_help = "Examples:\n  atelier budgets set 50 --period month --time-zone Europe/Berlin\n  \
                            atelier budgets set 5 --scope project --key p1 --period day\n  atelier budgets list"
    )]
    Budgets(Budgets),
    /// What was made
    #[command(subcommand)]
    Assets(Assets),
}

/// `atelier up`.
#[derive(Debug, Args)]
pub struct Up {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:7777", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Loopback address at which workers connect: processes that serve node types of their own
    #[arg(long, value_name = "ADDRESS")]
    pub workers: Option<SocketAddr>,
}

/// `atelier run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Workflow file, or id or name of a saved workflow
    #[arg(value_name = "FILE|WORKFLOW")]
    pub workflow: String,
    /// Version of the saved workflow [default: the newest one]
    #[arg(long = "at", value_name = "VERSION")]
    pub at: Option<i64>,
    /// Value of an input, by its name; JSON for anything but text. May be given several times
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Print every event as a line of JSON, and a summary as the last one
    #[arg(long)]
    pub json: bool,
    /// Copy what was made into this folder as well, with readable names
    #[arg(long, short = 'o', value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Id of the run; a second start with the same id starts nothing twice [default: a new one]
    #[arg(long, value_name = "ID")]
    pub job_id: Option<String>,
}

/// `atelier check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Workflow files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Value of an input, by its name
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// Print a line of JSON for each file
    #[arg(long)]
    pub json: bool,
}

/// How a list is printed.
#[derive(Debug, Clone, Args)]
pub struct Listing {
    /// At most this many rows
    #[arg(long, short = 'n', default_value = "50", value_name = "N")]
    pub limit: String,
    /// Print a row a line, as JSON
    #[arg(long)]
    pub json: bool,
}

/// `atelier jobs`.
#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// Runs, newest first
    List {
        /// Only this status: queued, running, completed, failed, cancelled
        #[arg(long)]
        status: Option<String>,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// One run
    Get {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Events of a run as lines of JSON; follows a run that goes on
    Events {
        /// Its id
        id: String,
        /// Only events after this number
        #[arg(long, default_value_t = 0, value_name = "SEQ")]
        after: i64,
        /// Accepted for symmetry: events are always JSON
        #[arg(long)]
        json: bool,
    },
    /// Cancel a run
    Cancel {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Push a value into an input of a run that goes on, or end the input, or both
    Push {
        /// Its id
        id: String,
        /// The input: its name, else the id of its node
        name: String,
        /// The value: JSON, or else text
        #[arg(required_unless_present = "finish")]
        value: Option<String>,
        /// Take the value as text, also when it looks like JSON
        #[arg(long)]
        text: bool,
        /// Nothing follows
        #[arg(long)]
        finish: bool,
        /// Only along the edges of this output of the input's node
        #[arg(long)]
        handle: Option<String>,
        /// Id of the push; a second one with the same id changes nothing [default: a new one]
        #[arg(long, value_name = "ID")]
        input_id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a run event to a controlled node of a run that goes on
    Control {
        /// Its id
        id: String,
        /// The node
        node: String,
        /// Property of the event; JSON, or else text. May be given several times
        #[arg(long = "property", short = 'p', value_name = "NAME=VALUE")]
        properties: Vec<String>,
        /// Wait for the outputs and print them
        #[arg(long)]
        wait: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Go on with a run that is suspended
    Resume {
        /// Its id
        id: String,
        /// Part of the state that the waiting node goes on with; JSON, or else text. May be given several times
        #[arg(long = "state", value_name = "NAME=VALUE")]
        state: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `atelier generations`.
#[derive(Debug, Subcommand)]
pub enum Generations {
    /// Rows of the ledger, newest first
    List {
        /// Which rows.
        #[command(flatten)]
        filter: Filter,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// One row, or a unique beginning of its id
    Get {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Close generations whose driver is gone, now instead of in a few seconds
    Sweep {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Wait until a generation is settled
    Await {
        /// Its id
        id: String,
        /// Seconds to wait at most, up to 1800
        #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=1800))]
        timeout: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Cancel a running generation
    Cancel {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which rows of the ledger.
#[derive(Debug, Clone, Default, Args)]
pub struct Filter {
    /// Only this status: running, completed, failed, cancelled, interrupted
    #[arg(long)]
    pub status: Option<String>,
    /// Only this provider
    #[arg(long)]
    pub provider: Option<String>,
    /// Only this model
    #[arg(long)]
    pub model: Option<String>,
    /// Only this capability, for instance text_to_image
    #[arg(long)]
    pub capability: Option<String>,
    /// Only this run
    #[arg(long = "job", alias = "job-id", value_name = "ID")]
    pub job_id: Option<String>,
    /// Only this chat thread
    #[arg(long = "thread", alias = "thread-id", value_name = "ID")]
    pub thread_id: Option<String>,
    /// Only this project
    #[arg(long = "project", alias = "project-id", value_name = "ID")]
    pub project_id: Option<String>,
    /// Only rows opened at or after this instant (ISO 8601)
    #[arg(long, value_name = "INSTANT")]
    pub since: Option<String>,
}
impl Filter {
    /// As a query.
    #[must_use]
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let Self {
            status,
            provider,
            model,
            capability,
            job_id,
            thread_id,
            project_id,
            since,
        } = self;
        [
            ("status", status),
            ("provider", provider),
            ("model", model),
            ("capability", capability),
            ("job_id", job_id),
            ("thread_id", thread_id),
            ("project_id", project_id),
            ("since", since),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.clone().map(|value| (name, value)))
        .collect()
    }
}

/// `atelier assets`.
#[derive(Debug, Subcommand)]
pub enum Assets {
    /// Assets, newest first
    List {
        /// Only assets of this run
        #[arg(long = "job", alias = "job-id", value_name = "ID")]
        job_id: Option<String>,
        /// Only this kind: image, audio, video, text, or a media type
        #[arg(long = "type", value_name = "TYPE")]
        content_type: Option<String>,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// One asset; with --out its bytes
    Get {
        /// Its id
        id: String,
        /// Write its bytes to this file; `-` is stdout
        #[arg(long, short = 'o', value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
