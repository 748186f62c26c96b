//! Where a change is made: here, when this member leads, or by the member that does.

#[cfg(feature = "simulation")]
use cachesql_group::simulation::PlantedBug;
use cachesql_table::GroupSnapshot;
use cachesql_types::limits;
use futures::future::join_all;
use tokio::time::{Instant, sleep};

use crate::command::{Command, Done, decode_answer};
use crate::error::NodeError;
use crate::log::Lead;
use crate::mutation::Mutation;
use crate::node::Node;
use crate::refresher::Refresher;
use crate::remembered::RequestKey;
use crate::request::LoadReport;
use crate::retention;
use crate::writer::Written;

impl Node {
    /// Makes a change, here or where the leader is.
    pub(crate) async fn mutate(&self, mutation: Mutation, key: Option<RequestKey>) -> Result<Written, NodeError> {
        match self.command(Command::Write(mutation, key)).await? {
            Done::Written(written) => Ok(written),
            other => other.unexpected(),
        }
    }

    /// Has a command carried out by whoever leads, and returns once this node shows what was done.
    pub(crate) async fn command(&self, command: Command) -> Result<Done, NodeError> {
        let deadline = Instant::now().checked_add(limits::LEADER_WAIT);
        let mut may_be_done = false;
        loop {
            let outcome = match self.log.leader() {
                Lead::Here => self.carry_out(command.clone()).await,
                Lead::There(leader) => self.forward(&leader, &command).await,
                Lead::Nobody => Err(NodeError::NotLeader { group: self.core.group.to_string(), leader: None }),
            };
            let again = match &outcome {
                // Nothing was done; who leads now may be known in a moment.
                Err(NodeError::NotLeader { .. }) => true,
                // It may have been done: then it is not done again.
                Err(NodeError::Unknown) => matches!(command, Command::Write(_, Some(_))),
                _ => false,
            };
            if !again || deadline.is_none_or(|deadline| Instant::now() >= deadline) {
                // That the last try did nothing says nothing of one before it.
                return if again && may_be_done { Err(NodeError::Unknown) } else { outcome };
            }
            may_be_done |= matches!(outcome, Err(NodeError::Unknown));
            sleep(limits::LEADER_LOOK).await;
        }
    }

    async fn forward(&self, leader: &str, command: &Command) -> Result<Done, NodeError> {
        let bytes = command.encode();
        let wait = match command {
            Command::Write(..) | Command::Clean(_) => limits::with_time_for(bytes.len(), limits::FORWARDED_WRITE_WAIT),
            Command::Load(_) | Command::Refresh => limits::FORWARDED_LOAD_WAIT,
        };
        let answer = tokio::select! {
            answer = self.log.ask_leader(leader, &bytes, wait) => answer?,
            // Whether it still carried it out, another leader may know one day; its caller should not wait for that.
            () = self.no_longer_led_by(leader) => return Err(NodeError::Unknown),
        };
        let done =
            decode_answer(&answer).map_err(|error| NodeError::Internal(format!("the leader's answer: {error}")))??;
        #[cfg(feature = "simulation")]
        if PlantedBug::ForwardedBeforeApplied.is_planted() {
            return Ok(done);
        }
        match tokio::time::timeout(wait, self.log.applied(done.index())).await {
            Ok(applied) => applied.map(|()| done),
            // It was done, but this node does not show it: whoever reads here next would not find it.
            Err(_) => Err(NodeError::Unknown),
        }
    }

    /// Waits until this member knows of another leader, or of none.
    async fn no_longer_led_by(&self, leader: &str) {
        loop {
            sleep(limits::LEADER_LOOK).await;
            if !matches!(self.log.leader(), Lead::There(known) if known == leader) {
                return;
            }
        }
    }

    /// Carries out a command here, where the leader should be.
    pub(crate) async fn carry_out(&self, command: Command) -> Result<Done, NodeError> {
        match command {
            Command::Write(mutation, key) => {
                let plan = self.core.read_now(|newest| mutation.plan(newest));
                self.writer.write(plan, key).await.map(Done::Written)
            }
            Command::Clean(table) => {
                let rows = retention::clean(&self.core, &self.writer, &table).await?;
                Ok(Done::Cleaned(rows, self.core.read_now(GroupSnapshot::index)))
            }
            Command::Load(table) => self.load_here(&table).await.map(Done::Loaded),
            Command::Refresh => {
                let outcomes = join_all(self.configured.load_full().refreshers.values().map(Refresher::load)).await;
                let tables = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?.len();
                Ok(Done::Refreshed(tables as u64, self.core.read_now(GroupSnapshot::index)))
            }
        }
    }

    async fn load_here(&self, table: &str) -> Result<LoadReport, NodeError> {
        let configured = self.configured.load_full();
        let names = configured.refreshers.keys().map(String::as_str);
        let found = cachesql_types::resolve_name(names, table).and_then(|at| configured.refreshers.values().nth(at));
        match found {
            Some(refresher) => refresher.load().await,
            // A table without a source is told from one that does not exist.
            None => Err(NodeError::NoSource { table: self.core.table(table)?.schema().name.clone() }),
        }
    }
}
