//! What a client reads of a configuration file: groups, their nodes, their tables, and its own options. The file is
//! `cachesql.properties` or `cachesql.toml`; all that is wrong is told at once, with file and line.

mod authorization;
mod document;
mod file;
mod problem;
mod settings;

pub use problem::{ConfigError, Problem};
pub use settings::Consistency;

pub(crate) use authorization::bearer;
pub(crate) use file::read;
pub(crate) use settings::Settings;

use crate::address::Address;

/// A checked configuration.
#[derive(Debug, Default)]
pub(crate) struct Configured {
    /// Every group, in the order of the file.
    pub(crate) groups: Vec<ConfiguredGroup>,
    /// The names of nodes, as "not leader" answers use them.
    pub(crate) names: Vec<(String, Address)>,
    /// The client's own options.
    pub(crate) settings: Settings,
}

/// One group.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredGroup {
    pub(crate) name: String,
    /// `None` where the group elects one.
    pub(crate) leader: Option<Address>,
    /// The leader among them; each once.
    pub(crate) members: Vec<Address>,
    pub(crate) tables: Vec<String>,
}
