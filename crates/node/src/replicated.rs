//! A group's log as consensus keeps it, on disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cachesql_group::disk::{Disk, Folder};
use cachesql_group::register;
use cachesql_group::transport::{Transport, TransportError, Urgency};
use cachesql_group::{Drive, Group, GroupConfig, ProposeError};
use cachesql_types::{LogIndex, limits};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::entry::{Entry, EntryError, read_array, take};
use crate::error::NodeError;
use crate::log::{Log, Settled, Submitted};
use crate::state::{State, was_applied};
use crate::tasks::stopped;

/// The log of a member whose disk is `D`.
pub(crate) struct ReplicatedLog<D: Disk + Clone> {
    group: Arc<Group<D, State>>,
    name: String,
}

impl ReplicatedLog<Arc<Folder>> {
    /// Starts the only member of a group in a folder: founds the group where the folder is empty, or goes on with what is there.
    /// When this returns, everything that the group ever acknowledged is in the state.
    pub(crate) async fn start_alone(
        folder: &Path,
        group: &str,
        node: &str,
        seed: u64,
        state: Arc<State>,
    ) -> Result<Self, NodeError> {
        let named =
            |error: &dyn std::fmt::Display| NodeError::Config(format!("data folder {}: {error}", folder.display()));
        let disk = Arc::new(open_folder(folder).await.map_err(|error| named(&error))?);
        let identity = Identity::of(&*disk, group, node, seed).map_err(|error| named(&error))?;
        let config = GroupConfig {
            name: group.to_owned(),
            number: identity.number,
            heartbeat: limits::HEARTBEAT,
            election: limits::ELECTION,
            snapshot_after: limits::SNAPSHOT_ENTRIES,
            kept_entries: limits::KEPT_ENTRIES,
            drive: Drive::Thread,
        };
        let member = Group::start(config, disk, state, Arc::new(Alone)).await.map_err(|error| named(&error))?;
        if member.is_founded().await.map_err(|error| named(&error))? {
            member.stand().await.map_err(|error| named(&error))?;
        } else {
            let voters = [(identity.number, node.to_owned())].into();
            member.found(voters).await.map_err(|error| named(&error))?;
        }
        member.wait_until(|status| status.leads || status.stopped.is_some()).await;
        member.confirm().await.map_err(|error| named(&error))?;
        Ok(ReplicatedLog { group: Arc::new(member), name: group.to_owned() })
    }
}

/// Opens a folder, and waits a moment for whoever is about to leave it.
async fn open_folder(path: &Path) -> io::Result<Folder> {
    let deadline = Instant::now() + limits::FOLDER_WAIT;
    loop {
        match Folder::open(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                sleep(limits::FOLDER_RETRY).await;
            }
            outcome => return outcome,
        }
    }
}

impl<D: Disk + Clone> ReplicatedLog<D> {
    fn refused(&self, error: ProposeError) -> NodeError {
        of_group(&self.name, error)
    }

    /// Has the state written out when the log has grown long beside it, so that the log can be forgotten, until told to stop.
    pub(crate) fn compact(&self, mut stop: watch::Receiver<bool>) -> impl Future<Output = ()> + Send + 'static {
        let group = self.group.clone();
        async move {
            loop {
                tokio::select! {
                    () = stopped(&mut stop) => return,
                    () = group.machine().grown() => {}
                }
                if let Err(error) = group.make_snapshot().await {
                    tracing::warn!(%error, "no snapshot can be made");
                    return;
                }
            }
        }
    }
}

fn of_group(name: &str, error: ProposeError) -> NodeError {
    match error {
        ProposeError::NotLeader { leader } => NodeError::NotLeader { group: name.to_owned(), leader },
        ProposeError::Unknown => NodeError::Unknown,
        ProposeError::Stopped(reason) => NodeError::Fenced(reason),
        ProposeError::Members(reason) => NodeError::Internal(reason),
    }
}

impl<D: Disk + Clone> Log for ReplicatedLog<D> {
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(async {
            match self.group.confirm().await {
                Ok(_) => Ok(()),
                // Nothing was proposed: only that this member leads could not be made sure.
                Err(ProposeError::Unknown) => Err(NodeError::NotLeader { group: self.name.clone(), leader: None }),
                Err(error) => Err(self.refused(error)),
            }
        })
    }

    fn submit(&self, entry: Entry) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        Box::pin(async move {
            let proposal = entry.encode();
            // A log that is given more than it can keep stops, and the member with it.
            let (bytes, most) = (proposal.len(), limits::LOG_RECORD_BYTES - limits::LOG_RECORD_HEAD_BYTES);
            if bytes > most {
                return Err(NodeError::WriteTooLarge { bytes, most });
            }
            let submitted = self.group.submit(proposal.into()).await.map_err(|error| self.refused(error))?;
            let name = self.name.clone();
            let settled: Submitted = Box::pin(async move {
                let (index, outcome) = submitted.settled().await.map_err(|error| of_group(&name, error))?;
                Ok(Settled { index: LogIndex(index), applied: was_applied(&outcome) })
            });
            Ok(settled)
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.group.stop())
    }
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

/// Whose folder it is.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    group: String,
    node: String,
    /// The member's number in the group. It is given once: a member that lost its disk comes back under another, and so cannot break
    /// what it promised before.
    number: u64,
}

/// The register that an identity is kept in.
const IDENTITY: &str = "identity";
/// Its form: this, the number in eight bytes (little-endian), then the names of group and node, each with its length in two.
const IDENTITY_FORM: u8 = 1;

impl Identity {
    /// The identity that is in a folder, which must be this node's in this group; a new one where there is none.
    fn of(disk: &impl Disk, group: &str, node: &str, seed: u64) -> Result<Identity, String> {
        let found = register::read(disk, IDENTITY).map_err(|error| error.to_string())?;
        let Some(bytes) = found else {
            let identity = Identity { group: group.to_owned(), node: node.to_owned(), number: seed };
            register::write(disk, IDENTITY, &identity.encode()).map_err(|error| error.to_string())?;
            return Ok(identity);
        };
        let identity = Identity::decode(&bytes).map_err(|error| format!("{IDENTITY}: {error}"))?;
        if identity.group != group || identity.node != node {
            let Identity { group: other_group, node: other, .. } = identity;
            return Err(format!(
                "it belongs to node {other:?} of group {other_group:?}, not to node {node:?} of group {group:?}"
            ));
        }
        Ok(identity)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![IDENTITY_FORM];
        bytes.extend_from_slice(&self.number.to_le_bytes());
        for name in [&self.group, &self.node] {
            bytes.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Result<Identity, EntryError> {
        let rest = &mut bytes;
        let [form] = read_array(rest)?;
        if form != IDENTITY_FORM {
            return Err(EntryError::Tag(form));
        }
        let number = u64::from_le_bytes(read_array(rest)?);
        let mut name = || -> Result<String, EntryError> {
            let length = u16::from_le_bytes(read_array(rest)?);
            Ok(String::from_utf8_lossy(take(rest, usize::from(length))?).into_owned())
        };
        Ok(Identity { group: name()?, node: name()?, number })
    }
}
