//! Flags of commands about what calls cost and may cost.

use clap::{Args, Subcommand, ValueEnum};

use super::{Filter, Listing};

/// A dimension of a cost report.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Group {
    /// By provider
    Provider,
    /// By provider and model
    Model,
    /// By capability
    Capability,
    /// By run
    Job,
    /// By day
    Day,
    /// By node
    Node,
    /// By project
    Project,
    /// By who asked: workflow, chat, cli, …
    Surface,
}
impl Group {
    /// As in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Capability => "capability",
            Self::Job => "job",
            Self::Day => "day",
            Self::Node => "node",
            Self::Project => "project",
            Self::Surface => "surface",
        }
    }
}

/// `atelier costs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Costs {
    /// A report by its name.
    #[command(subcommand)]
    pub command: Option<CostsCommand>,
    /// Group by
    #[arg(long, value_enum, default_value = "model")]
    pub by: Group,
    /// Time zone that days are cut in, for instance Europe/Berlin; UTC when it is not given
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
    /// Which rows.
    #[command(flatten)]
    pub calls: Calls,
}

/// Which calls a report is about, and how it is printed.
#[derive(Debug, Clone, Default, Args)]
pub struct Calls {
    /// Which rows.
    #[command(flatten)]
    pub filter: Filter,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Reports by name.
#[derive(Debug, Subcommand)]
pub enum CostsCommand {
    /// The total, and the sums by provider and by model
    Summary(Calls),
    /// Call by call, newest first, with what became of each
    List {
        /// Which rows.
        #[command(flatten)]
        filter: Filter,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// Sums by provider
    ByProvider(Calls),
    /// Sums by provider and model
    ByModel(Calls),
}

/// `atelier budgets`.
#[derive(Debug, Subcommand)]
pub enum Budgets {
    /// Budgets, oldest first, with what is used of them
    List {
        /// Of this user, or `*` for everybody; for admins
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// One budget
    Get {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a budget, or change the one that is there for the scope, period and currency
    Set(Box<SetBudget>),
    /// Remove a budget, and what was counted in it
    Delete {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `atelier budgets set`.
#[derive(Debug, Args)]
pub struct SetBudget {
    /// The most that may be spent in a period, for instance 50 or 12.50
    #[arg(value_name = "AMOUNT", required_unless_present = "max_calls")]
    pub limit: Option<String>,
    /// Its currency
    #[arg(long, default_value = "USD")]
    pub currency: String,
    /// When it starts over
    #[arg(long, value_enum, default_value = "month")]
    pub period: Period,
    /// Which calls are bounded
    #[arg(long, value_enum, default_value = "user")]
    pub scope: Scope,
    /// Id of the project, workflow, run or provider
    #[arg(long)]
    pub key: Option<String>,
    /// Time zone of days and months, for instance Europe/Berlin; UTC when it is not given
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
    /// The most calls in a period
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u32>,
    /// What happens to calls whose price is not known
    #[arg(long, value_enum)]
    pub unpriced: Option<Unpriced>,
    /// What such a call is taken to cost, with `--unpriced assume`
    #[arg(long, value_name = "AMOUNT")]
    pub assumed_cost: Option<String>,
    /// Whose calls, or `*` for everybody's; for admins
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which calls a budget bounds.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Scope {
    /// All of them
    User,
    /// Those of a project
    Project,
    /// Those of a workflow
    Workflow,
    /// Those of a run
    Run,
    /// Those to a provider
    Provider,
}
impl Scope {
    /// As in a request.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Workflow => "workflow",
            Self::Run => "run",
            Self::Provider => "provider",
        }
    }
}

/// When a budget starts over.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Period {
    /// Every day
    Day,
    /// Every month
    Month,
    /// Never
    Total,
}
impl Period {
    /// As in a request.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Total => "total",
        }
    }
}

/// What happens to calls whose price is not known.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Unpriced {
    /// They pass
    Allow,
    /// They are refused
    Deny,
    /// They are taken to cost something
    Assume,
}
impl Unpriced {
    /// As in a request.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Assume => "assume",
        }
    }
}
