//! A node's log over a group of members: alone, or with others on other machines.
//!
//! `log` is what the node sees. `member` is the node as one of several: what it asks of the others over `way`, and what it
//! answers them. `members` decides who is one.

mod identity;
mod log;
mod member;
mod members;
mod presence;
mod way;

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cachesql_group::disk::{Disk, Folder};
use cachesql_group::transport::{Transport, TransportError, Urgency};
use cachesql_group::{Drive, Group, GroupConfig};
use cachesql_peer::{Directory, Endpoint, Identity as PeerIdentity, IdentityError, Network, NodeName, PeerDoor, Peers};
use cachesql_types::limits;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use self::identity::Identity;
pub(crate) use self::log::ReplicatedLog;
use self::member::Member;
pub use self::members::MembersChange;
use self::way::Way;
use crate::config::{ClusterConfig, NodeConfig};
use crate::error::NodeError;
use crate::state::State;
use crate::tasks::{Tasks, stopped};

/// Opens a node's folder, and waits a moment for whoever is about to leave it.
pub(crate) async fn open_folder(path: &Path) -> Result<Arc<Folder>, NodeError> {
    let deadline = Instant::now() + limits::FOLDER_WAIT;
    loop {
        match Folder::open(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                sleep(limits::FOLDER_RETRY).await;
            }
            Err(error) => return Err(NodeError::Config(format!("data folder {}: {error}", path.display()))),
            Ok(folder) => return Ok(Arc::new(folder)),
        }
    }
}

fn group_config(config: &NodeConfig, number: u64, drive: Drive) -> GroupConfig {
    let (snapshot_after, kept_entries) = config.snapshot_entries;
    GroupConfig {
        name: config.group.clone(),
        number,
        heartbeat: limits::HEARTBEAT,
        election: limits::ELECTION,
        snapshot_after,
        kept_entries,
        drive,
    }
}

/// Starts the only member of a group: founds the group where the disk is empty, or goes on with what is there. When this returns,
/// everything that the group ever acknowledged is in the state. `place` names the disk in errors.
pub(crate) async fn start_alone<D: Disk + Clone>(
    config: &NodeConfig,
    disk: D,
    place: &str,
    state: Arc<State>,
) -> Result<ReplicatedLog<D>, NodeError> {
    let named = |error: &dyn std::fmt::Display| NodeError::Config(format!("{place}: {error}"));
    let identity = Identity::of(&disk, &config.group, &config.name, config.seed).map_err(|error| named(&error))?;
    let group = group_config(config, identity.number, Drive::Thread);
    let member = Group::start(group, disk, state, Arc::new(Alone)).await.map_err(|error| named(&error))?;
    if member.is_founded().await.map_err(|error| named(&error))? {
        member.stand().await.map_err(|error| named(&error))?;
    } else {
        let voters = [(identity.number, config.name.clone())].into();
        member.found(voters).await.map_err(|error| named(&error))?;
    }
    member.wait_until(|status| status.leads || status.stopped.is_some()).await;
    member.confirm().await.map_err(|error| named(&error))?;
    Ok(ReplicatedLog::alone(Arc::new(member), &config.group))
}

/// Starts a member of a group of several. It returns once the others can reach it; that it founds the group, or is taken in, comes
/// later.
pub(crate) async fn start_member<D: Disk + Clone, N: Network + Clone>(
    config: &NodeConfig,
    cluster: &ClusterConfig,
    network: N,
    disk: D,
    drive: Drive,
    place: &str,
    state: Arc<State>,
) -> Result<ReplicatedLog<D>, NodeError> {
    let named = |error: &dyn std::fmt::Display| NodeError::Config(format!("{place}: {error}"));
    let wrong = |error: &dyn std::fmt::Display| NodeError::Config(format!("peers: {error}"));
    let identity = Identity::of(&disk, &config.group, &config.name, config.seed).map_err(|error| named(&error))?;
    let peer = PeerIdentity::new(&cluster.name, &config.name, cluster.secret.bytes()).map_err(|error| wrong(&error))?;
    let directory = Directory::new(nodes_of(cluster).map_err(|error| wrong(&error))?);
    let endpoint = Endpoint::new(peer, directory.clone(), cluster.randomness.clone());
    let door = PeerDoor::bind(network.clone(), &cluster.listen, endpoint.clone()).await;
    let door = door.map_err(|error| NodeError::Config(error.to_string()))?;
    let own = endpoint.identity.node.clone();
    let way = Way { peers: Peers::new(network, endpoint), group: Arc::from(config.group.as_str()), own };

    let group = group_config(config, identity.number, drive);
    let group = Group::start(group, disk, state, Arc::new(way.clone())).await.map_err(|error| named(&error))?;
    let (member, questions) = Member::new(Arc::new(group), way, directory, cluster.clone());
    let presence = Tasks::new();
    let mut stop = presence.stop_signal();
    let services = member.services();
    presence.spawn(async move { door.serve(services, stopped(&mut stop)).await });
    presence.spawn(member.clone().answer_questions(questions, presence.stop_signal()));
    presence.spawn(member.clone().settle(presence.stop_signal()));
    presence.spawn(member.clone().keep_members(presence.stop_signal()));
    Ok(ReplicatedLog::of_member(member, presence))
}

/// The nodes of a cluster as they are called by.
fn nodes_of(cluster: &ClusterConfig) -> Result<Vec<(NodeName, String)>, IdentityError> {
    cluster.nodes.iter().map(|(name, address)| Ok((NodeName::new(name)?, address.clone()))).collect()
}

/// Nobody else is there.
struct Alone;

impl Transport for Alone {
    fn ask<'a>(
        &'a self,
        member: &'a str,
        _: Urgency,
        _: Bytes,
        _: std::time::Duration,
    ) -> BoxFuture<'a, Result<Bytes, TransportError>> {
        let error = TransportError::Unreachable(format!("{member}: this group has one member"));
        Box::pin(std::future::ready(Err(error)))
    }
}
