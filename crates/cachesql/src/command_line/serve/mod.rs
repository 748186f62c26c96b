//! `cachesql serve`: from a configuration to a node that answers, until it is told to stop.

mod announce;
mod progress;
mod reload;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cachesql_node::Node;
use cachesql_server::{HttpDoor, HttpDoorError};
use tracing::{info, warn};

use super::arguments::ServeArguments;
use super::failure::Failure;
use super::sample::Sample;
use super::stop::Stop;
use super::terminal;
use crate::config::{self, ConfigError, Configuration, NodeSection};
use crate::start::{http_config, node_config};

/// The configuration that is looked for when none is named.
const DEFAULT_FILE: &str = "cachesql.toml";

pub(super) async fn run(arguments: ServeArguments) -> Result<(), Failure> {
    let (file, _sample) = file(&arguments)?;
    let mut configuration = config::read_file(&file)?;
    for notice in &configuration.notices {
        warn!("{}: {notice}", file.display());
    }
    let name = chosen_node(&configuration, arguments.node.as_deref())?;
    override_node(&mut configuration, &name, &arguments);
    let node_section = configuration.node(Some(&name)).map_err(ConfigError::Unusable)?;
    check_protection(&configuration, node_section, &arguments)?;
    let Some(http) = http_config(&configuration, node_section)? else {
        let why =
            format!("node {name:?} opens no door (`http`), so that nothing could ask it; --http ADDRESS opens one");
        return Err(ConfigError::Unusable(why).into());
    };
    let mut node_config = node_config(&configuration, node_section)?;
    node_config.reread = Some(reload::reread(file, &configuration, node_section, arguments.clone()));
    let memory_bytes = node_config.memory_bytes;

    // The door first: an address that is taken is better known before an hour of loading than after it.
    let door = HttpDoor::bind(http).await.map_err(of_door)?;
    let address = door.local_address();
    let stop = Stop::on_signals(arguments.with_parent)?;
    let node = Node::start(node_config).await.map_err(|e| Failure::Failed(e.to_string()))?;
    reload::on_hangup(node.clone())?;
    let kept = match &node_section.data {
        Some(folder) => format!("what it acknowledges is kept in {}", folder.display()),
        None => "nothing is kept over a restart: tables are loaded from their origins".to_owned(),
    };
    eprintln!("node {name} answers on http://{address}; {kept}");

    let announcing = tokio::spawn(announce_when_ready(node.clone(), memory_bytes, address));
    door.serve(node.clone(), stop.requested()).await;
    announcing.abort();
    // Told to stop while it loads, it leaves no bars behind; without a terminal there are none to clear.
    let _ = terminal::bars().clear();
    info!("stopping");
    node.shutdown().await;
    Ok(())
}

/// The file to serve, and the sample when it is that.
fn file(arguments: &ServeArguments) -> Result<(PathBuf, Option<Sample>), Failure> {
    if let Some(file) = &arguments.file {
        return Ok((file.clone(), None));
    }
    if Path::new(DEFAULT_FILE).exists() {
        return Ok((DEFAULT_FILE.into(), None));
    }
    let sample = Sample::unpack()?;
    eprintln!("no file is named and there is no {DEFAULT_FILE} here: serving the bundled sample data");
    Ok((sample.configuration(), Some(sample)))
}

fn chosen_node(configuration: &Configuration, name: Option<&str>) -> Result<String, ConfigError> {
    configuration.node(name).map(|n| n.name.clone()).map_err(ConfigError::Unusable)
}

/// An address that everyone could reach is refused before anything is opened: a mistake of the command line if it came from
/// there, else of the file.
fn check_protection(
    configuration: &Configuration,
    node: &NodeSection,
    arguments: &ServeArguments,
) -> Result<(), Failure> {
    match (configuration.check_protection(node), &arguments.http) {
        (Ok(()), _) => Ok(()),
        (Err(error), None) => Err(error.into()),
        (Err(_), Some(address)) => Err(Failure::Usage(format!(
            "--http {address} can be reached from other machines: set `token` in [access] of the configuration, or say --insecure \
             if everyone may read and write"
        ))),
    }
}

/// A host's name that turned out to be beyond this machine is a fault of the configuration; an address in use is not.
fn of_door(error: HttpDoorError) -> Failure {
    match error {
        HttpDoorError::Unprotected { .. } => ConfigError::Unusable(error.to_string()).into(),
        HttpDoorError::Listen { ref source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            Failure::Failed(format!("{error}; another program answers there. --http 127.0.0.1:0 takes any free port"))
        }
        HttpDoorError::Listen { .. } => Failure::Failed(error.to_string()),
    }
}

/// Puts what the command line says in the place of what the file says.
fn override_node(configuration: &mut Configuration, name: &str, arguments: &ServeArguments) {
    for node in configuration.nodes.iter_mut().filter(|n| n.name == name) {
        if let Some(http) = &arguments.http {
            node.http = Some(http.clone());
        }
        node.memory_bytes = arguments.memory.or(node.memory_bytes);
        node.insecure |= arguments.insecure;
    }
}

async fn announce_when_ready(node: Arc<Node>, memory_bytes: u64, address: std::net::SocketAddr) {
    progress::show_until_loaded(node.loads(), memory_bytes).await;
    node.wait_ready().await;
    announce::ready(&node, address);
}
