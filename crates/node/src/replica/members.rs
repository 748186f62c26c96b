//! Who the members are: a node founds the group or is taken in, and the leader has those vote who should.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cachesql_group::disk::Disk;
use cachesql_group::{ProposeError, Standing};
use cachesql_peer::Lane;
use cachesql_types::limits;
use futures::future::join_all;
use tokio::sync::watch;
use tokio::time::sleep;

use super::member::Member;
use super::nodes_of;
use super::presence::Presence;
use super::way::{MEMBERS, PRESENCE};
use crate::bytes_of::{ReadError, end, put_number, put_tagged, put_text, take_byte, take_number, take_text};
use crate::config::{ClusterConfig, Failover};
use crate::tasks::stopped;

/// A change of who the members are, which only the leader makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersChange {
    /// Take this node in, under this number.
    Join {
        /// Its number.
        number: u64,
        /// Its name.
        name: String,
    },
    /// Take this node out.
    Leave(String),
    /// Have this node lead.
    Lead(String),
}

const JOIN: u8 = 1;
const LEAVE: u8 = 2;
const LEAD: u8 = 3;

impl MembersChange {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            MembersChange::Join { number, name } => {
                out.push(JOIN);
                put_number(&mut out, *number);
                put_text(&mut out, name);
            }
            MembersChange::Leave(name) => put_tagged(&mut out, LEAVE, name),
            MembersChange::Lead(name) => put_tagged(&mut out, LEAD, name),
        }
        out
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<MembersChange, ReadError> {
        let rest = &mut bytes;
        let change = match take_byte(rest)? {
            JOIN => MembersChange::Join { number: take_number(rest)?, name: take_text(rest)? },
            LEAVE => MembersChange::Leave(take_text(rest)?),
            LEAD => MembersChange::Lead(take_text(rest)?),
            unknown => return Err(ReadError::Tag(unknown)),
        };
        end(rest)?;
        Ok(change)
    }
}

impl<D: Disk + Clone> Member<D> {
    /// Founds the group, or has this node taken in, until told to stop.
    ///
    /// Only the group's first node founds it, and only once every other one has said that it is in no such group: a founder that lost
    /// its disk must not found a second group beside the first.
    pub(super) async fn settle(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut told = None;
        loop {
            match self.group.is_founded().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => return tracing::error!(%error, "this node cannot become a member"),
            }
            let missing = self.try_to_settle().await;
            if !missing.is_empty() && told.as_ref() != Some(&missing) {
                tracing::info!(
                    group = &*self.way.group,
                    nodes = missing.join(", "),
                    "waiting for what these nodes know of the group"
                );
                told = Some(missing);
            }
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = sleep(limits::MEMBERS_LOOK) => {}
            }
        }
    }

    /// One try; the nodes that could not be asked, when that is what keeps it from succeeding.
    async fn try_to_settle(&self) -> Vec<String> {
        let cluster = self.cluster.load_full();
        let others: Vec<&String> = cluster.members.iter().filter(|name| name.as_str() != self.node()).collect();
        let answers = join_all(others.iter().map(|name| self.presence_of(name))).await;
        let inside = others
            .iter()
            .zip(&answers)
            .find_map(|(name, answer)| Some((name, answer.as_ref()?)).filter(|(_, p)| p.is_in));
        if let Some((name, presence)) = inside {
            let leader = presence.leader.as_ref().unwrap_or(name);
            let join = MembersChange::Join { number: self.group.number(), name: self.node().to_owned() };
            if let Err(error) = self.ask_for(leader, &join).await {
                tracing::debug!(%leader, error, "not taken in yet");
            }
            return Vec::new();
        }
        let unheard = others.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
        let missing: Vec<String> = unheard.map(|(name, _)| (*name).clone()).collect();
        let founder = cluster.leader.as_ref().or(cluster.members.first());
        if missing.is_empty() && founder.is_none_or(|founder| founder == self.node()) {
            let itself = [(self.group.number(), self.node().to_owned())].into();
            match self.group.found(itself).await {
                Ok(()) => tracing::info!(group = &*self.way.group, "founded the group"),
                Err(error) => tracing::warn!(%error, "the group could not be founded"),
            }
        }
        missing
    }

    async fn presence_of(&self, name: &str) -> Option<Presence> {
        let answer = self.way.call(name, Lane::Urgent, PRESENCE, &[], limits::MEMBER_WAIT).await;
        let answer = answer.inspect_err(|error| tracing::debug!(%error, "no word of a member")).ok()?;
        Presence::decode(&answer).inspect_err(|error| tracing::warn!(name, %error, "what a member says")).ok()
    }

    /// Asks a member, which should be the leader, for a change.
    pub(super) async fn ask_for(&self, leader: &str, change: &MembersChange) -> Result<(), String> {
        let answer = self.way.call(leader, Lane::Urgent, MEMBERS, &change.encode(), limits::MEMBERS_WAIT).await;
        answer.map(drop).map_err(|error| error.to_string())
    }

    /// Makes a change, on the leader.
    pub(super) async fn change_members(&self, change: MembersChange) -> Result<(), ProposeError> {
        let _turn = self.changing.lock().await;
        match change {
            MembersChange::Join { number, name } => {
                if !self.cluster.load().members.contains(&name) {
                    return Err(ProposeError::Members(format!("node {name:?} is not a member in this node's file")));
                }
                if self.group.status().members.iter().any(|member| member.number == number) {
                    return Ok(());
                }
                tracing::info!(name, number, "taking a member in");
                self.group.add_learner(number, &name).await
            }
            MembersChange::Leave(name) => self.take_out(&name).await,
            MembersChange::Lead(name) => self.hand_over(&name).await,
        }
    }

    async fn take_out(&self, name: &str) -> Result<(), ProposeError> {
        let members = self.group.status().members;
        let gone: BTreeSet<u64> = members.iter().filter(|m| m.name == name).map(|m| m.number).collect();
        if gone.is_empty() {
            return Err(ProposeError::Members(format!("node {name:?} is not a member of the group")));
        }
        if !members.iter().any(|member| member.votes && !gone.contains(&member.number)) {
            return Err(ProposeError::Members(format!("node {name:?} is the last one that votes")));
        }
        tracing::info!(name, "taking a member out");
        self.group.remove(gone).await
    }

    async fn hand_over(&self, name: &str) -> Result<(), ProposeError> {
        let members = self.group.status().members;
        let Some(to) = members.iter().find(|member| member.name == name) else {
            return Err(ProposeError::Members(format!("node {name:?} is not a member of the group")));
        };
        if name == self.node() {
            return Ok(());
        }
        if to.votes {
            return self.group.hand_over(to.number).await;
        }
        // With one voter, the next leader is the next voter.
        self.group.set_voters([to.number].into(), true).await
    }

    /// Has those vote who should, while this member leads, until told to stop.
    pub(super) async fn keep_members(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = self.group.wait_leads(true) => {}
            }
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = sleep(limits::MEMBERS_LOOK) => {}
            }
            if self.should_vote_alone() {
                let _turn = self.changing.lock().await;
                // It may have been handed over meanwhile.
                if self.should_vote_alone()
                    && let Err(error) = self.group.set_voters([self.group.number()].into(), true).await
                {
                    tracing::warn!(%error, "the members cannot be changed");
                }
            }
            if let Some((number, gone)) = self.next_promotion().await {
                let _turn = self.changing.lock().await;
                let changed = match number {
                    Some(number) => self.group.promote(number, gone).await,
                    None => self.group.remove(gone).await,
                };
                match changed {
                    Ok(()) => tracing::info!(group = &*self.way.group, "the members were brought up to date"),
                    Err(error) => tracing::warn!(%error, "the members cannot be changed"),
                }
            }
        }
    }

    /// Makes of the nodes and the members what is configured now. Those who are members no more are taken out, by whoever leads,
    /// before this node knows them no more.
    pub(super) async fn reconfigure(&self, cluster: ClusterConfig) -> Result<(), ProposeError> {
        let wrong = |error: cachesql_peer::IdentityError| ProposeError::Members(error.to_string());
        let nodes = nodes_of(&cluster).map_err(wrong)?;
        for (name, address) in &nodes {
            self.directory.insert(name.clone(), address.clone());
        }
        let members = cluster.members.clone();
        let before = self.cluster.swap(Arc::new(cluster));
        for gone in before.members.iter().filter(|name| !members.contains(name)) {
            let is_in = self.group.status().members.iter().any(|member| member.name == *gone);
            if is_in && self.group.leader().0 {
                self.change_members(MembersChange::Leave(gone.clone())).await?;
            }
        }
        self.directory.replace(nodes);
        Ok(())
    }

    /// Whether others vote although an operator is to say who leads: so it is once that was configured while they did.
    fn should_vote_alone(&self) -> bool {
        let status = self.group.status();
        let votes = |own: bool| status.members.iter().any(|m| m.votes && (m.number == self.group.number()) == own);
        self.cluster.load().failover == Failover::Manual && status.leads && votes(true) && votes(false)
    }

    /// A member that should vote and has caught up, with those whose place it takes; or only those who are gone for good.
    async fn next_promotion(&self) -> Option<(Option<u64>, BTreeSet<u64>)> {
        let status = self.group.status();
        if !status.leads {
            return None;
        }
        let cluster = self.cluster.load_full();
        let mut by_name: BTreeMap<&str, Vec<&Standing>> = BTreeMap::new();
        for member in status.members.iter().filter(|member| cluster.members.contains(&member.name)) {
            by_name.entry(&member.name).or_default().push(member);
        }
        let last = status.last.unwrap_or(0);
        for (name, standings) in by_name {
            let current = match &standings[..] {
                // The one that leads, under its own number.
                several if several.iter().any(|member| member.number == self.group.number()) => self.group.number(),
                [only] if only.votes || cluster.failover == Failover::Manual => continue,
                [only] => only.number,
                // It lost its disk, and is in again: which of its numbers it has now, only it knows.
                _ => match self.presence_of(name).await {
                    Some(presence) => presence.number,
                    None => continue,
                },
            };
            let others = standings.iter().map(|member| member.number).filter(|number| *number != current);
            let gone: BTreeSet<u64> = others.collect();
            let Some(standing) = standings.iter().find(|member| member.number == current) else { continue };
            let caught_up =
                standing.matched.is_some_and(|matched| matched.saturating_add(limits::CAUGHT_UP_ENTRIES) >= last);
            // Where a leader was lost in the middle of this, both of its numbers vote: then it is done to its end.
            let replaces = standings.iter().any(|member| member.votes && member.number != current);
            let promoted = caught_up && (!standing.votes || replaces) && cluster.failover == Failover::Automatic;
            if promoted {
                return Some((Some(current), gone));
            }
            let none_votes = standings.iter().all(|member| member.number == current || !member.votes);
            if !gone.is_empty() && none_votes {
                return Some((None, gone));
            }
        }
        None
    }
}
