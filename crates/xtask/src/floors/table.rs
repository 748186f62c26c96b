//! The floor table: every crate there is or will be, what it may import, and what belongs to few crates only.
//! This is the one place that changes when a crate is added.

/// One line of the table.
pub(crate) struct Floor {
    /// Folder in `crates/`.
    pub(crate) folder: &'static str,
    /// Folders of the crates that it may depend on.
    pub(crate) may_import: &'static [&'static str],
}

pub(crate) const FLOORS: &[Floor] = &[
    // 0: nouns that everyone shares.
    Floor { folder: "types", may_import: &[] },
    // 1: pure state.
    Floor { folder: "table", may_import: &["types"] },
    Floor { folder: "ring", may_import: &["types"] },
    // 2: one concern each; they meet only in the node.
    Floor { folder: "cache", may_import: &["types", "ring"] },
    Floor { folder: "peer", may_import: &["types"] },
    Floor { folder: "group", may_import: &["types", "table"] },
    Floor { folder: "sql", may_import: &["types", "table"] },
    Floor { folder: "origin", may_import: &["types"] },
    // 3: one running member.
    Floor { folder: "node", may_import: &["types", "table", "ring", "cache", "peer", "group", "sql", "origin"] },
    // 4: doors, and the client, which knows nothing of the node.
    Floor { folder: "server", may_import: &["node", "types"] },
    Floor { folder: "client", may_import: &["types", "ring"] },
    // 5: the binary and the library face.
    Floor {
        folder: "cachesql",
        may_import: &["types", "table", "ring", "cache", "peer", "group", "sql", "origin", "node", "server", "client"],
    },
    // Beside the floors: nothing that ships depends on these.
    Floor { folder: "sim", may_import: &["types", "table", "ring", "cache", "peer", "group", "sql", "origin", "node"] },
    Floor { folder: "testbed", may_import: &[] },
    Floor {
        folder: "bench",
        may_import: &[
            "types", "table", "ring", "cache", "peer", "group", "sql", "origin", "node", "server", "client", "cachesql",
        ],
    },
    Floor { folder: "xtask", may_import: &[] },
];

/// What tests of any crate may use beside the crates below theirs.
pub(crate) const DEV_ONLY: &[&str] = &["testbed"];

/// Crates that never ship, and that the rules below do not bind.
pub(crate) const BESIDE: &[&str] = &["sim", "testbed", "bench", "xtask"];

/// An outside crate that belongs to few of ours.
pub(crate) struct Belongs {
    pub(crate) dependency: &'static str,
    pub(crate) to: &'static [&'static str],
    pub(crate) reason: &'static str,
}

pub(crate) const BELONGS: &[Belongs] = &[
    Belongs { dependency: "datafusion", to: &["sql"], reason: "only `sql` knows the query engine" },
    Belongs { dependency: "sqlparser", to: &["sql"], reason: "only `sql` reads SQL" },
    Belongs { dependency: "openraft", to: &["group"], reason: "nothing outside `group` names it" },
    Belongs { dependency: "chitchat", to: &["peer"], reason: "liveness is `peer`'s" },
    Belongs { dependency: "pgwire", to: &["server"], reason: "wire protocols are doors" },
    Belongs { dependency: "tokio-postgres", to: &["origin"], reason: "only `origin` speaks to databases" },
    Belongs { dependency: "mysql_async", to: &["origin"], reason: "only `origin` speaks to databases" },
    Belongs {
        dependency: "toml",
        to: &["cachesql", "client"],
        reason: "only the binary and the client read configuration files",
    },
    Belongs { dependency: "clap", to: &["cachesql"], reason: "only the binary has a command line" },
];

/// Paths in code that only some crates may name.
pub(crate) struct Absence {
    /// A path matches when it begins with one of these.
    pub(crate) paths: &'static [&'static str],
    /// Empty: the rule binds every crate but those in `except`.
    pub(crate) within: &'static [&'static str],
    pub(crate) except: &'static [&'static str],
    pub(crate) reason: &'static str,
}

pub(crate) const ABSENCES: &[Absence] = &[
    Absence {
        paths: &[
            "tokio",
            "async_std",
            "smol",
            "std::fs",
            "std::net",
            "std::os::unix::net",
            "std::process",
            "std::env",
            "std::time::Instant",
            "std::time::SystemTime",
            "std::thread::sleep",
            "chrono::Utc",
            "chrono::Local",
            "jiff::Timestamp::now",
            "jiff::Zoned::now",
            "rand",
            "rand_core",
            "getrandom",
            "fastrand",
            "uuid::Uuid::new_v4",
        ],
        within: &["types", "table", "ring"],
        except: &[],
        reason: "floors 0 and 1 have no runtime, sockets, files, clock or randomness: they are passed in",
    },
    Absence {
        paths: &[
            "std::net::TcpListener",
            "std::net::TcpStream",
            "std::net::UdpSocket",
            "std::os::unix::net",
            "tokio::net",
            "socket2",
            "mio",
        ],
        within: &[],
        // The command line asks a running node by itself until there is a `client`.
        except: &["peer", "server", "client", "origin", "cachesql"],
        reason: "sockets are opened in `peer`, `server`, `client`, `origin` and the command line only",
    },
    Absence {
        paths: &["std::fs", "tokio::fs"],
        within: &[],
        except: &["origin", "server", "group", "client", "cachesql"],
        reason: "files are opened in `origin`, `server`, `group`, `client` and the binary only",
    },
    Absence {
        paths: &["std::env::var", "std::env::var_os", "std::env::vars", "std::env::vars_os"],
        within: &[],
        except: &["cachesql"],
        reason: "only the binary reads configuration, and the environment is part of it",
    },
];

pub(crate) fn floor(folder: &str) -> Option<&'static Floor> {
    FLOORS.iter().find(|floor| floor.folder == folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate's line stands below the lines of all that it imports, so the table has no cycle.
    #[test]
    fn every_import_points_to_an_earlier_line() {
        for (line, floor) in FLOORS.iter().enumerate() {
            for import in floor.may_import {
                let at = FLOORS.iter().position(|other| other.folder == *import);
                assert!(at.is_some_and(|at| at < line), "{} imports {import}", floor.folder);
            }
        }
    }

    #[test]
    fn nothing_that_ships_may_import_what_does_not() {
        for floor in FLOORS {
            assert!(floor.may_import.iter().all(|import| !BESIDE.contains(import)), "{}", floor.folder);
        }
    }

    #[test]
    fn the_client_reaches_neither_node_nor_engine() {
        let client = floor("client").expect("in the table");
        assert_eq!(client.may_import, ["types", "ring"]);
    }
}
