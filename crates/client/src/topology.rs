//! What `GET /v1/cluster` tells: nodes, groups, who leads, and which tables are where. Members that are not known here are
//! skipped, so that nodes may say more one day.

use std::collections::HashMap;

use serde::Deserialize;

use crate::address::Address;

/// One node's view of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    pub(crate) groups: Vec<GroupView>,
    /// Addresses of the nodes that answer HTTP, by name.
    pub(crate) addresses: HashMap<String, Address>,
}

/// One group in it.
#[derive(Debug, Default)]
pub(crate) struct GroupView {
    pub(crate) name: String,
    /// The leader's address; `None` when there is none, or when it answers no HTTP.
    pub(crate) leader: Option<Address>,
    /// Grows with each election; 0 where the node does not say.
    pub(crate) term: u64,
    pub(crate) members: Vec<Address>,
    pub(crate) tables: Vec<String>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    nodes: Vec<NodeBody>,
    groups: Vec<GroupBody>,
}

#[derive(Deserialize)]
struct NodeBody {
    name: String,
    #[serde(default)]
    http: Option<String>,
}

#[derive(Deserialize)]
struct GroupBody {
    name: String,
    #[serde(default)]
    leader: Option<String>,
    #[serde(default)]
    term: Option<u64>,
    #[serde(default)]
    members: Vec<MemberBody>,
    #[serde(default)]
    tables: Vec<String>,
}

#[derive(Deserialize)]
struct MemberBody {
    node: String,
}

impl Topology {
    /// Reads the answer of the node at `asked`.
    pub(crate) fn read(asked: &Address, body: &[u8]) -> Result<Topology, String> {
        let body: Body =
            serde_json::from_slice(body).map_err(|error| format!("an answer that tells no routes: {error}"))?;
        let alone = body.nodes.len() == 1;
        let mut addresses = HashMap::new();
        for node in body.nodes {
            // A node that is alone is the one that was asked, and is reached as it was reached, whatever it calls itself. A
            // door that is no address is no door.
            let door =
                || node.http.as_deref().and_then(|http| Address::of_door(http).ok()).map(|door| door.reached_as(asked));
            if let Some(address) = if alone { Some(asked.clone()) } else { door() } {
                addresses.insert(node.name, address);
            }
        }
        let view = |group: GroupBody| GroupView {
            leader: group.leader.and_then(|leader| addresses.get(&leader).cloned()),
            term: group.term.unwrap_or(0),
            members: group.members.iter().filter_map(|member| addresses.get(&member.node).cloned()).collect(),
            name: group.name,
            tables: group.tables,
        };
        Ok(Topology { groups: body.groups.into_iter().map(view).collect(), addresses })
    }

    /// The view of a group by its name; else, as files may call it otherwise, the only one, or the one that has one of its
    /// tables.
    pub(crate) fn group(&self, name: &str, tables: &[&str]) -> Option<&GroupView> {
        let named = self.groups.iter().find(|view| view.name == name);
        named.or_else(|| match self.groups.as_slice() {
            [only] => Some(only),
            several => several.iter().find(|view| view.tables.iter().any(|table| tables.contains(&table.as_str()))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"node":"a","epoch":9,"nodes":[{"name":"a","http":"http://127.0.0.1:8080"},{"name":"b","http":"0.0.0.0:81"},
        {"name":"c","http":null}],"groups":[{"name":"insurance","leader":"b","term":3,"failover":"automatic",
        "members":[{"node":"a","role":"follower","index":4711},{"node":"b","role":"leader","index":4711},{"node":"c","role":"learner","index":1}],
        "tables":["KCA2","KCA3"]},{"name":"finance","leader":null,"members":[{"node":"a","role":"follower","index":1}],"tables":["KCA4"]}]}"#;

    fn asked() -> Address {
        "http://db:9".parse().expect("an address")
    }

    #[test]
    fn the_documented_answer_is_read() {
        let topology = Topology::read(&asked(), BODY.as_bytes()).expect("sound");
        let insurance = topology.group("insurance", &[]).expect("there");
        assert_eq!(insurance.leader.as_ref().map(ToString::to_string).as_deref(), Some("http://db:81"));
        let members: Vec<String> = insurance.members.iter().map(ToString::to_string).collect();
        assert_eq!((members, insurance.term), (vec!["http://127.0.0.1:8080".to_owned(), "http://db:81".to_owned()], 3));
        assert_eq!(topology.group("finance", &[]).expect("there").leader, None);
        assert_eq!(topology.group("money", &["KCA4"]).expect("by its table").name, "finance");
        assert!(topology.group("money", &["other"]).is_none());
    }

    #[test]
    fn a_node_that_is_alone_is_reached_as_it_was() {
        let body = r#"{"nodes":[{"name":"a","http":"http://10.9.9.9:1"}],"groups":[{"name":"g","leader":"a","members":[{"node":"a"}]}]}"#;
        let topology = Topology::read(&asked(), body.as_bytes()).expect("sound");
        assert_eq!(topology.group("any name", &[]).expect("the only one").leader, Some(asked()));
    }

    #[test]
    fn what_tells_no_routes_is_refused() {
        for body in ["", "[]", "{}", "{\"groups\":{}}", "{\"groups\":[{}]}"] {
            assert!(Topology::read(&asked(), body.as_bytes()).is_err(), "{body}");
        }
    }
}
