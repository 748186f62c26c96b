//! In which order a read asks the members of a group.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::chance::Chance;
use crate::limits;
use crate::node::Node;

/// Which member of a group a read asks first. The others follow when it does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The leader half the time, else a follower, each as often as another.
    #[default]
    Seed,
    /// Any member, each as often as another.
    Uniform,
    /// The member whose answers took least time, smoothed; now and then any, so that one that became near is noticed.
    Nearest,
    /// The leader.
    Leader,
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "seed" => Ok(Policy::Seed),
            "uniform" => Ok(Policy::Uniform),
            "nearest" => Ok(Policy::Nearest),
            "leader" => Ok(Policy::Leader),
            _ => Err(format!("expected seed, uniform, nearest or leader, found {text:?}")),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Seed => "seed",
            Policy::Uniform => "uniform",
            Policy::Nearest => "nearest",
            Policy::Leader => "leader",
        })
    }
}

impl Policy {
    /// All members, the one to be asked first at the front.
    pub(crate) fn order(self, leader: Option<&Arc<Node>>, members: &[Arc<Node>], chance: &Chance) -> Vec<Arc<Node>> {
        let mut order = members.to_vec();
        chance.shuffle(&mut order);
        let leader_at =
            |order: &[Arc<Node>]| order.iter().position(|node| leader.is_some_and(|l| Arc::ptr_eq(l, node)));
        let first = match self {
            Policy::Uniform => None,
            Policy::Leader => leader_at(&order),
            Policy::Seed if chance.below(2) == 0 => leader_at(&order),
            // The rest is shuffled: the first that does not lead is any of the followers.
            Policy::Seed => order.iter().position(|node| leader.is_some_and(|l| !Arc::ptr_eq(l, node))),
            Policy::Nearest => {
                order.sort_by_key(|node| node.round_trip_ns());
                let explores = chance.below(limits::NEAREST_EXPLORES) == 0;
                explores.then(|| usize::try_from(chance.below(order.len() as u64)).unwrap_or(0))
            }
        };
        if let Some(prefix) = first.and_then(|at| order.get_mut(..=at)) {
            prefix.rotate_right(1);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const DRAWS: usize = 6_000;

    fn nodes(count: usize) -> Vec<Arc<Node>> {
        let node = |at| Arc::new(Node::new(format!("http://n{at}:1").parse().expect("an address")));
        (0..count).map(node).collect()
    }

    /// How often each member came first.
    fn firsts(policy: Policy, leader: Option<usize>, members: &[Arc<Node>]) -> Vec<usize> {
        let chance = Chance::new(42);
        let mut counts = vec![0; members.len()];
        for _ in 0..DRAWS {
            let order = policy.order(leader.and_then(|at| members.get(at)), members, &chance);
            assert_eq!(order.len(), members.len());
            let first = members.iter().position(|node| Arc::ptr_eq(node, &order[0])).expect("a member");
            counts[first] += 1;
        }
        counts
    }

    /// Within six standard deviations of a binomial.
    fn near(count: usize, probability: f64) -> bool {
        let (draws, count) = (DRAWS as f64, count as f64);
        (count - draws * probability).abs() <= 6.0 * (draws * probability * (1.0 - probability)).sqrt()
    }

    #[test]
    fn seed_asks_the_leader_half_the_time_and_each_follower_as_often() {
        let members = nodes(4);
        let counts = firsts(Policy::Seed, Some(2), &members);
        let sixth = 1.0 / 6.0;
        for (count, probability) in counts.iter().zip([sixth, sixth, 0.5, sixth]) {
            assert!(near(*count, probability), "{counts:?}");
        }
        assert_eq!(firsts(Policy::Seed, Some(0), &nodes(1)), [DRAWS]);
        assert!(firsts(Policy::Seed, None, &members).iter().all(|count| near(*count, 0.25)));
    }

    #[test]
    fn uniform_asks_each_as_often() {
        let counts = firsts(Policy::Uniform, Some(0), &nodes(4));
        assert!(counts.iter().all(|count| near(*count, 0.25)), "{counts:?}");
    }

    #[test]
    fn leader_asks_the_leader() {
        assert_eq!(firsts(Policy::Leader, Some(1), &nodes(3)), [0, DRAWS, 0]);
    }

    #[test]
    fn nearest_asks_the_nearest_and_at_times_another() {
        let members = nodes(3);
        for (node, ms) in members.iter().zip([30, 5, 20]) {
            node.took(Duration::from_millis(ms));
        }
        let counts = firsts(Policy::Nearest, Some(0), &members);
        let explored = 1.0 / 32.0 / 3.0;
        assert!(near(counts[0], explored) && near(counts[2], explored), "{counts:?}");
        assert!(near(counts[1], 1.0 - 2.0 * explored), "{counts:?}");
    }

    #[test]
    fn policies_have_names() {
        for policy in [Policy::Seed, Policy::Uniform, Policy::Nearest, Policy::Leader] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("Seed".parse::<Policy>().is_err());
    }
}
