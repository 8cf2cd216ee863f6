//! Flags of commands about saved workflows and node types.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Listing, Run};

/// `atelier workflows`.
#[derive(Debug, Subcommand)]
pub enum Workflows {
    /// Saved workflows, newest first
    List {
        /// Only workflows in whose name, description or tags all of these words occur
        #[arg(long, short = 'q')]
        query: Option<String>,
        /// Only workflows with this tag
        #[arg(long)]
        tag: Option<String>,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// One workflow; its graph with --json
    Get {
        /// Its id or name
        workflow: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Save a file over a workflow; a changed graph is a new version
    Save(Save),
    /// Save files as new workflows
    Import(Import),
    /// Write a workflow as a file that imports to the same graph
    Export(Export),
    /// Versions of a workflow, newest first
    Versions {
        /// Its id or name
        workflow: String,
        /// How it is printed.
        #[command(flatten)]
        listing: Listing,
    },
    /// Make an older version the newest one
    Restore {
        /// Its id or name
        workflow: String,
        /// Number of the version
        version: i64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a workflow; its runs stay
    Delete {
        /// Its id or name
        workflow: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a workflow, as `atelier run` does
    Run(Run),
}

/// `atelier workflows save`.
#[derive(Debug, Args)]
pub struct Save {
    /// Its id or name
    pub workflow: String,
    /// Workflow file; what it says besides the graph is saved too
    pub file: PathBuf,
    /// What is new about this version
    #[arg(long)]
    pub note: Option<String>,
    /// Only if this is its newest version
    #[arg(long, value_name = "VERSION")]
    pub expect: Option<i64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `atelier workflows import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Workflow files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Name of the workflow; only with one file [default: the one in the file, else the file's]
    #[arg(long)]
    pub name: Option<String>,
    /// Id of the workflow; only with one file [default: a new one]
    #[arg(long)]
    pub id: Option<String>,
    /// Print a line of JSON for each file
    #[arg(long)]
    pub json: bool,
}

/// `atelier workflows export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Its id or name
    pub workflow: String,
    /// Write to this file; `-` is stdout
    #[arg(long, short = 'o', value_name = "FILE", default_value = "-")]
    pub out: PathBuf,
    /// The version [default: the newest one]
    #[arg(long = "at", value_name = "VERSION")]
    pub at: Option<i64>,
    /// Names of the fields of nodes and edges
    #[arg(long, value_enum, default_value = "saved")]
    pub spelling: Spelling,
    /// Where the values of nodes stand
    #[arg(long, value_enum, default_value = "saved")]
    pub values: Values,
    /// Nodes and edges at the top of the file
    #[arg(long)]
    pub flat: bool,
}

/// How the fields of nodes and edges are spelled.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Spelling {
    /// As they were saved
    Saved,
    /// `dynamic_properties`
    Snake,
    /// `dynamicProperties`
    Camel,
}
impl Spelling {
    /// As in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Snake => "snake",
            Self::Camel => "camel",
        }
    }
}

/// Where the values of nodes stand.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Values {
    /// As they were saved
    Saved,
    /// In `data`
    Data,
    /// In `properties`
    Properties,
}
impl Values {
    /// As in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Data => "data",
            Self::Properties => "properties",
        }
    }
}

/// `atelier nodes`.
#[derive(Debug, Subcommand)]
pub enum Nodes {
    /// Node types
    List {
        /// Only types below this namespace, for instance nodetool.image
        #[arg(long)]
        namespace: Option<String>,
        /// Only types in whose type, title or description all of these words occur, separated by commas
        #[arg(long, short = 'q')]
        query: Option<String>,
        /// Print a type a line, as JSON
        #[arg(long)]
        json: bool,
    },
    /// One node type with its inputs and outputs
    Get {
        /// The type, for instance nodetool.image.TextToImage
        node_type: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
