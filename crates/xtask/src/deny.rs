//! `cargo xtask deny`: licences, bans and sources of every dependency, as `deny.toml` says.
//!
//! `cargo deny check licenses bans sources` reads the same file and is used when it is installed. It takes minutes to
//! build, so a machine without it gets the same verdict from `cargo metadata`; a setting that is not understood here
//! is an error, so the two cannot drift apart unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::licence;
use crate::steps::{cargo, output, run};

const FILE: &str = "deny.toml";

pub(crate) fn report(root: &Path) -> Outcome<()> {
    let text = fs::read_to_string(root.join(FILE)).context(|| FILE.to_owned())?;
    let rules = Rules::parse(&text)?;
    if output(&mut cargo(root, &["deny", "--version"])).is_ok() {
        run(&mut cargo(root, &["deny", "--locked", "check", "licenses", "bans", "sources"]))?;
    }
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    for target in &rules.targets {
        let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
        let metadata = output(&mut cargo(root, &arguments))?;
        let metadata: Value = serde_json::from_str(&metadata).context(|| "cargo metadata".to_owned())?;
        packages.extend(packages_of(&metadata)?);
    }
    let mut problems: Vec<String> = packages.values().flat_map(|package| rules.check(package)).collect();
    problems.extend(rules.twofold(packages.values()));
    for problem in &problems {
        println!("error: {problem}");
    }
    println!("deny: {} packages, {} errors", packages.len(), problems.len());
    if problems.is_empty() { Ok(()) } else { Err(Failure::new(format!("deny: {} errors", problems.len()))) }
}

#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// None: a crate of this workspace.
    source: Option<String>,
}

/// Packages that the resolved graph of `cargo metadata` reaches.
fn packages_of(metadata: &Value) -> Outcome<BTreeMap<String, Package>> {
    let list = |value: &Value| value.as_array().cloned().ok_or_else(|| Failure::new("cargo metadata: not an array"));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let reached: BTreeSet<String> =
        list(&metadata["resolve"]["nodes"])?.iter().filter_map(|node| text(&node["id"])).collect();
    let mut packages = BTreeMap::new();
    for package in list(&metadata["packages"])? {
        let Some(id) = text(&package["id"]).filter(|id| reached.contains(id)) else { continue };
        let one = Package {
            name: text(&package["name"]).unwrap_or_default(),
            version: text(&package["version"]).unwrap_or_default(),
            licence: text(&package["license"]),
            source: text(&package["source"]),
        };
        packages.insert(id, one);
    }
    Ok(packages)
}

/// The part of `deny.toml` that is in use.
#[derive(Debug)]
struct Rules {
    targets: Vec<String>,
    licences: Vec<String>,
    exceptions: Vec<(String, Vec<String>)>,
    banned: BTreeMap<String, String>,
    registries: Vec<String>,
}

impl Rules {
    fn parse(text: &str) -> Outcome<Self> {
        let file: toml::Table = text.parse().context(|| FILE.to_owned())?;
        let mut rules = Self {
            targets: Vec::new(),
            licences: Vec::new(),
            exceptions: Vec::new(),
            banned: BTreeMap::new(),
            registries: Vec::new(),
        };
        for (section, settings) in &file {
            let settings =
                settings.as_table().ok_or_else(|| Failure::new(format!("{FILE}: {section} is no section")))?;
            for (key, value) in settings {
                match (section.as_str(), key.as_str()) {
                    ("graph", "targets") => rules.targets = texts(value),
                    ("licenses", "allow") => rules.licences = texts(value),
                    ("licenses", "exceptions") => {
                        rules.exceptions = tables(value)
                            .map(|one| (field(one, "crate"), one.get("allow").map(texts).unwrap_or_default()))
                            .collect();
                    }
                    ("bans", "deny") => {
                        rules.banned = tables(value).map(|one| (field(one, "crate"), field(one, "reason"))).collect();
                    }
                    ("sources", "allow-registry") => rules.registries = texts(value),
                    // Said for cargo-deny; what they ask for is what is done here.
                    ("sources", "unknown-registry" | "unknown-git") if value.as_str() == Some("deny") => {}
                    ("bans", "multiple-versions") if value.as_str() == Some("allow") => {}
                    ("licenses", "unused-allowed-license") | ("licenses", "confidence-threshold") => {}
                    _ => return Err(Failure::new(format!("{FILE}: {section}.{key} is not understood by xtask"))),
                }
            }
        }
        if rules.targets.is_empty() || rules.licences.is_empty() || rules.registries.is_empty() {
            return Err(Failure::new(format!("{FILE}: targets, licences and registries must be given")));
        }
        Ok(rules)
    }

    fn check(&self, package: &Package) -> Vec<String> {
        let Package { name, version, licence, source } = package;
        let mut problems = Vec::new();
        if let Some(reason) = self.banned.get(name) {
            problems.push(format!("{name} {version} is banned: {reason}"));
        }
        let excepted = |id: &str| {
            self.exceptions.iter().any(|(excepted, ids)| excepted == name && ids.iter().any(|allowed| allowed == id))
        };
        let allowed = |id: &str| self.licences.iter().any(|allowed| allowed == id) || excepted(id);
        match licence {
            Some(expression) if licence::is_allowed(expression, &allowed) => {}
            Some(expression) => problems.push(format!("{name} {version}: licence `{expression}` is not allowed")),
            None => problems.push(format!("{name} {version}: states no licence")),
        }
        if let Some(source) = source {
            let registry = source.strip_prefix("registry+").unwrap_or("not a registry");
            if !self.registries.iter().any(|allowed| allowed == registry) {
                problems.push(format!("{name} {version}: comes from {source}"));
            }
        }
        problems
    }

    /// Two TLS stacks, or two providers of one, panic at run time; each must be there once.
    fn twofold<'a>(&self, packages: impl Iterator<Item = &'a Package>) -> Vec<String> {
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages.filter(|package| ["rustls", "ring", "tokio", "arrow-array"].contains(&&*package.name)) {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
        versions.retain(|_, versions| versions.len() > 1);
        versions.iter().map(|(name, versions)| format!("{name} is there in several versions: {versions:?}")).collect()
    }
}

fn texts(value: &toml::Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

fn tables(value: &toml::Value) -> impl Iterator<Item = &toml::Table> {
    value.as_array().into_iter().flatten().filter_map(toml::Value::as_table)
}

fn field(table: &toml::Table, name: &str) -> String {
    table.get(name).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        [graph]
        targets = ["x86_64-unknown-linux-gnu"]
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ crate = "odd", allow = ["Zlib"] }]
        [bans]
        deny = [{ crate = "openssl-sys", reason = "one TLS provider" }]
        [sources]
        unknown-git = "deny"
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
    "#;
    const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

    fn problems(name: &str, licence: Option<&str>, source: Option<&str>) -> Vec<String> {
        let package = Package {
            name: name.into(),
            version: "1.0.0".into(),
            licence: licence.map(str::to_owned),
            source: source.map(str::to_owned),
        };
        Rules::parse(RULES).expect("rules").check(&package)
    }

    #[test]
    fn what_is_allowed_passes() {
        assert_eq!(problems("fine", Some("MIT OR GPL-3.0-only"), Some(REGISTRY)), Vec::<String>::new());
        assert_eq!(problems("ours", Some("Apache-2.0"), None), Vec::<String>::new());
        assert_eq!(problems("odd", Some("MIT AND Zlib"), Some(REGISTRY)), Vec::<String>::new());
    }

    #[test]
    fn licences_are_caught() {
        assert_eq!(
            problems("a", Some("GPL-3.0-only"), Some(REGISTRY)),
            ["a 1.0.0: licence `GPL-3.0-only` is not allowed"]
        );
        assert_eq!(
            problems("a", Some("MIT AND Zlib"), Some(REGISTRY)),
            ["a 1.0.0: licence `MIT AND Zlib` is not allowed"]
        );
        assert_eq!(problems("a", None, Some(REGISTRY)), ["a 1.0.0: states no licence"]);
    }

    #[test]
    fn bans_are_caught() {
        assert_eq!(
            problems("openssl-sys", Some("MIT"), Some(REGISTRY)),
            ["openssl-sys 1.0.0 is banned: one TLS provider"]
        );
    }

    #[test]
    fn sources_are_caught() {
        for source in ["git+https://example.org/x?rev=1#1", "registry+https://example.org/index"] {
            assert_eq!(problems("a", Some("MIT"), Some(source)), [format!("a 1.0.0: comes from {source}")]);
        }
    }

    #[test]
    fn two_versions_of_what_must_be_one_are_caught() {
        let package =
            |version: &str| Package { name: "rustls".into(), version: version.into(), licence: None, source: None };
        let rules = Rules::parse(RULES).expect("rules");
        assert_eq!(rules.twofold([package("0.23.1")].iter()), Vec::<String>::new());
        assert_eq!(rules.twofold([package("0.22.0"), package("0.23.1")].iter()).len(), 1);
    }

    #[test]
    fn a_setting_that_is_not_understood_is_an_error() {
        let rules = format!("{RULES}\n[advisories]\nyanked = \"deny\"");
        assert!(Rules::parse(&rules).is_err_and(|failure| failure.to_string().contains("advisories.yanked")));
    }

    #[test]
    fn only_packages_that_the_graph_reaches_count() {
        let metadata = serde_json::json!({
            "packages": [{ "id": "a 1", "name": "a", "version": "1.0.0", "license": "MIT", "source": REGISTRY },
                         { "id": "b 1", "name": "b", "version": "1.0.0", "license": null, "source": null }],
            "resolve": { "nodes": [{ "id": "a 1" }] },
        });
        let packages = packages_of(&metadata).expect("packages");
        assert_eq!(packages.values().map(|package| package.name.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
