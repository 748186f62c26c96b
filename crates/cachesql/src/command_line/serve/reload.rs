//! Reading the configuration again while a node serves: on SIGHUP, or because `POST /v1/cluster/reload` asks for it.

use std::path::PathBuf;
use std::sync::Arc;

use cachesql_node::{Node, NodeConfig, Reread};
use tracing::{info, warn};

use super::super::arguments::ServeArguments;
use super::super::failure::Failure;
use super::{check_protection, override_node};
use crate::config::{self, Configuration, NodeSection, Secret};
use crate::start::node_config;

/// What of a configuration the node's door is opened with, which it keeps until it is opened again.
#[derive(Clone, PartialEq, Eq)]
struct DoorWords {
    http: Option<String>,
    insecure: bool,
    token: Option<Secret>,
    body_bytes: Option<u64>,
}

impl DoorWords {
    fn of(configuration: &Configuration, node: &NodeSection) -> DoorWords {
        DoorWords {
            http: node.http.clone(),
            insecure: node.insecure,
            token: configuration.token.as_ref().map(|placed| placed.secret.clone()),
            body_bytes: configuration.limits.http_body_bytes,
        }
    }
}

/// What reads a node's configuration again, as it was read when it started.
pub(super) fn reread(
    file: PathBuf,
    configuration: &Configuration,
    node: &NodeSection,
    arguments: ServeArguments,
) -> Reread {
    let (name, started) = (node.name.clone(), DoorWords::of(configuration, node));
    Arc::new(move || {
        let read = || -> Result<(NodeConfig, bool), Failure> {
            let mut configuration = config::read_file(&file)?;
            override_node(&mut configuration, &name, &arguments);
            let node = configuration.node(Some(&name)).map_err(config::ConfigError::Unusable)?;
            check_protection(&configuration, node, &arguments)?;
            let door_stays = DoorWords::of(&configuration, node) == started;
            Ok((node_config(&configuration, node)?, door_stays))
        };
        let (config, door_stays) = read().map_err(|failure| failure.to_string())?;
        let door = "HTTP address, token or limits of the node".to_owned();
        Ok((config, if door_stays { Vec::new() } else { vec![door] }))
    })
}

/// Has a node read its configuration again whenever SIGHUP comes.
#[cfg(unix)]
pub(super) fn on_hangup(node: Arc<Node>) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |e: std::io::Error| Failure::Failed(format!("signals cannot be listened for: {e}"));
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match node.reload().await {
                Ok(reloaded) => {
                    info!(changes = reloaded.changed.len(), "the configuration was read again");
                    for what in reloaded.restart {
                        warn!(what, "this holds only after a restart");
                    }
                }
                Err(error) => warn!(%error, "the configuration was read again, and is not taken"),
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn on_hangup(_: Arc<Node>) -> Result<(), Failure> {
    Ok(())
}
