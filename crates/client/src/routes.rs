//! Table → group → nodes, as the client knows it at one moment. A table of routes is never changed; another takes its place.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::ConfiguredGroup;
use crate::node::{Node, Nodes};
use crate::session::{Session, Sessions};
use crate::topology::{GroupView, Topology};

/// One group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Who leads, as far as is known: while there is no leader, the last one is the best guess.
    pub(crate) leader: Option<Arc<Node>>,
    /// The term in which that was so; 0 when nobody said.
    term: u64,
    /// The nodes that hold its tables, in the order in which they were told.
    pub(crate) members: Vec<Arc<Node>>,
    pub(crate) session: Arc<Session>,
}

/// All routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    groups: Vec<Arc<Group>>,
    /// By the table's exact name.
    tables: HashMap<String, usize>,
    /// By its name in lower case.
    folded: HashMap<String, usize>,
    /// Nodes by their names, for "not leader, X is".
    names: HashMap<String, Arc<Node>>,
}

impl Routes {
    /// The routes of a file.
    pub(crate) fn of_file(
        groups: &[ConfiguredGroup],
        names: &[(String, crate::address::Address)],
        nodes: &Nodes,
        sessions: &Sessions,
    ) -> Routes {
        let mut routes = Routes::default();
        for configured in groups {
            let group = Group {
                name: configured.name.clone(),
                leader: configured.leader.as_ref().map(|address| nodes.at(address)),
                term: 0,
                members: configured.members.iter().map(|address| nodes.at(address)).collect(),
                session: sessions.of(&configured.name),
            };
            let at = routes.groups.len();
            routes.groups.push(Arc::new(group));
            for table in &configured.tables {
                routes.place(table, at);
            }
        }
        routes.names = names.iter().map(|(name, address)| (name.clone(), nodes.at(address))).collect();
        routes
    }

    fn place(&mut self, table: &str, group: usize) {
        self.tables.insert(table.to_owned(), group);
        self.folded.insert(table.to_lowercase(), group);
    }

    /// True when there is no group.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The one group, where there is no other.
    pub(crate) fn only(&self) -> Option<&Arc<Group>> {
        match self.groups.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The group of a table: its name matches exactly first, then without regard to case, as nodes match it.
    pub(crate) fn group_of(&self, table: &str) -> Option<&Arc<Group>> {
        let at = self.tables.get(table).or_else(|| self.folded.get(&table.to_lowercase()))?;
        self.groups.get(*at)
    }

    /// A group by its name.
    pub(crate) fn group(&self, name: &str) -> Option<&Arc<Group>> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The node that is called so.
    pub(crate) fn node_named(&self, name: &str) -> Option<&Arc<Node>> {
        self.names.get(name)
    }

    /// Every member of every group, each once.
    pub(crate) fn members(&self) -> Vec<Arc<Node>> {
        let mut members: Vec<Arc<Node>> = Vec::new();
        for node in self.groups.iter().flat_map(|group| &group.members) {
            if !members.iter().any(|known| Arc::ptr_eq(known, node)) {
                members.push(node.clone());
            }
        }
        members
    }

    fn tables_at(&self, at: usize) -> Vec<&str> {
        self.tables.iter().filter(|(_, group)| **group == at).map(|(table, _)| table.as_str()).collect()
    }

    /// The same routes, with what a node tells of who leads: those of a file stay as the file says.
    pub(crate) fn with_leaders(&self, topology: &Topology, nodes: &Nodes) -> Routes {
        let mut routes = self.clone();
        for (at, group) in routes.groups.iter_mut().enumerate() {
            let Some(view) = topology.group(&group.name, &self.tables_at(at)) else { continue };
            let mut updated = Group::clone(group);
            updated.follow(view, nodes);
            *group = Arc::new(updated);
        }
        let told = topology.addresses.iter().map(|(name, address)| (name.clone(), nodes.at(address)));
        routes.names.extend(told);
        routes
    }

    /// The routes that a node tells. A node that has only begun knows no group yet, which is no news of the others; one that
    /// is still loading does not tell all tables, so that what was known of groups that remain is kept.
    pub(crate) fn told_by(&self, topology: &Topology, nodes: &Nodes, sessions: &Sessions) -> Routes {
        if topology.groups.is_empty() {
            return self.clone();
        }
        let mut routes = Routes::default();
        for view in topology.groups.iter().filter(|view| !view.members.is_empty()) {
            let mut group = match self.group(&view.name) {
                Some(known) => Group::clone(known),
                None => Group {
                    name: view.name.clone(),
                    leader: None,
                    term: 0,
                    members: Vec::new(),
                    session: sessions.of(&view.name),
                },
            };
            group.members = view.members.iter().map(|address| nodes.at(address)).collect();
            group.follow(view, nodes);
            let at = routes.groups.len();
            routes.groups.push(Arc::new(group));
            for table in &view.tables {
                routes.place(table, at);
            }
        }
        for (table, at) in &self.tables {
            let group = self.groups.get(*at).and_then(|known| routes.groups.iter().position(|g| g.name == known.name));
            if let (Some(group), false) = (group, routes.folded.contains_key(&table.to_lowercase())) {
                routes.place(table, group);
            }
        }
        routes.names = topology.addresses.iter().map(|(name, address)| (name.clone(), nodes.at(address))).collect();
        routes
    }

    /// The same routes, with a group's leader as a write has found it.
    pub(crate) fn with_leader(&self, group: &str, leader: &Arc<Node>) -> Routes {
        let mut routes = self.clone();
        for known in routes.groups.iter_mut().filter(|known| known.name == group) {
            *known = Arc::new(Group { leader: Some(leader.clone()), ..Group::clone(known) });
        }
        routes
    }
}

impl Group {
    /// Takes over who leads, unless the teller is behind what is known.
    fn follow(&mut self, view: &GroupView, nodes: &Nodes) {
        if view.term < self.term {
            return;
        }
        self.term = view.term;
        if let Some(leader) = &view.leader {
            self.leader = Some(nodes.at(leader));
        }
    }

    /// Whether a node is the leader.
    pub(crate) fn is_led_by(&self, node: &Arc<Node>) -> bool {
        self.leader.as_ref().is_some_and(|leader| Arc::ptr_eq(leader, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    struct Bench {
        nodes: Nodes,
        sessions: Sessions,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { nodes: Nodes::default(), sessions: Sessions::default() }
        }

        fn told(&self, before: &Routes, groups: &str) -> Routes {
            let nodes = r#"[{"name":"a","http":"a:1"},{"name":"b","http":"b:1"}]"#;
            before.told_by(
                &topology(&format!("{{\"nodes\":{nodes},\"groups\":[{groups}]}}")),
                &self.nodes,
                &self.sessions,
            )
        }
    }

    fn topology(body: &str) -> Topology {
        let asked: Address = "http://a:1".parse().expect("an address");
        Topology::read(&asked, body.as_bytes()).expect("sound")
    }

    fn leader(routes: &Routes, group: &str) -> Option<String> {
        routes.group(group).and_then(|group| group.leader.as_ref()).map(|leader| leader.address.to_string())
    }

    const G: &str = r#"{"name":"g","leader":"a","term":4,"members":[{"node":"a"},{"node":"b"}],"tables":["T","U"]}"#;

    #[test]
    fn a_table_matches_exactly_and_then_without_case() {
        let bench = Bench::new();
        let other = r#"{"name":"h","leader":"b","members":[{"node":"b"}],"tables":["t"]}"#;
        let routes = bench.told(&Routes::default(), &format!("{G},{other}"));
        let group = |table: &str| routes.group_of(table).map(|group| group.name.as_str());
        assert_eq!((group("T"), group("t"), group("u"), group("x")), (Some("g"), Some("h"), Some("g"), None));
    }

    #[test]
    fn who_leads_never_goes_back_a_term() {
        let bench = Bench::new();
        let first = bench.told(&Routes::default(), G);
        let behind =
            bench.told(&first, &G.replace("\"term\":4", "\"term\":3").replace("\"leader\":\"a\"", "\"leader\":\"b\""));
        assert_eq!(leader(&behind, "g").as_deref(), Some("http://a:1"));
        let ahead =
            bench.told(&first, &G.replace("\"term\":4", "\"term\":5").replace("\"leader\":\"a\"", "\"leader\":\"b\""));
        assert_eq!(leader(&ahead, "g").as_deref(), Some("http://b:1"));
        let none =
            bench.told(&ahead, &G.replace("\"term\":4", "\"term\":6").replace("\"leader\":\"a\"", "\"leader\":null"));
        assert_eq!(leader(&none, "g").as_deref(), Some("http://b:1"), "the last one is the best guess");
    }

    #[test]
    fn tables_that_are_loading_keep_their_group_and_groups_that_are_gone_do_not() {
        let bench = Bench::new();
        let first = bench.told(&Routes::default(), G);
        let loading = bench.told(&first, &G.replace("[\"T\",\"U\"]", "[\"U\"]"));
        assert_eq!(loading.group_of("T").map(|group| group.name.as_str()), Some("g"));
        let moved = bench.told(&first, &G.replace("\"g\"", "\"h\""));
        assert_eq!(moved.group_of("T").map(|group| group.name.as_str()), Some("h"));
        assert!(moved.group("g").is_none());
        let begun = first.told_by(&topology("{\"groups\":[]}"), &bench.nodes, &bench.sessions);
        assert!(begun.group_of("T").is_some());
    }

    #[test]
    fn a_session_outlives_the_routes() {
        let bench = Bench::new();
        let first = bench.told(&Routes::default(), G);
        first.group("g").expect("there").session.saw("g:9");
        let again = bench.told(&first, &G.replace("\"term\":4", "\"term\":5"));
        assert!(again.group("g").expect("there").session.token().is_some());
    }
}
