//! How a group of several members is doing, for people and for clients that look for the leader.

use cachesql_group::Status;

use crate::config::Failover;

/// How a group is doing, as one of its members sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// The term, as far as this member knows.
    pub term: u64,
    /// The node that leads.
    pub leader: Option<String>,
    /// Whether this member leads.
    pub leads: bool,
    /// Who takes over from a leader that is gone.
    pub failover: Failover,
    /// The members, by name.
    pub members: Vec<MemberStatus>,
    /// The index of this member's last entry.
    pub last: u64,
    /// The index of the last entry that this member has applied.
    pub applied: u64,
    /// Why this member takes part no more, if it does not.
    pub stopped: Option<String>,
}

/// One member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The name of its node.
    pub node: String,
    /// Whether it votes; one that a change of members under way would have vote, or vote no more, does not.
    pub votes: bool,
    /// The index up to which it is known to have the log; only the leader knows.
    pub index: Option<u64>,
}

impl GroupStatus {
    pub(crate) fn of(status: &Status, failover: Failover) -> GroupStatus {
        let last = status.last.unwrap_or(0);
        let member = |member: &cachesql_group::Standing| MemberStatus {
            node: member.name.clone(),
            votes: member.votes_for_good,
            // The leader does not wait for itself.
            index: if status.leads && Some(&member.name) == status.leader.as_ref() {
                Some(last)
            } else {
                member.matched
            },
        };
        let mut members: Vec<MemberStatus> = status.members.iter().map(member).collect();
        members.sort_by(|one, other| one.node.cmp(&other.node));
        GroupStatus {
            term: status.term,
            leader: status.leader.clone(),
            leads: status.leads,
            failover,
            members,
            last,
            applied: status.applied.unwrap_or(0),
            stopped: status.stopped.clone(),
        }
    }
}
