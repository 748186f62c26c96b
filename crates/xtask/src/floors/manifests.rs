//! Dependencies between crates, as their manifests state them, against the floor table.

use super::Finding;
use super::table::{BELONGS, BESIDE, DEV_ONLY, floor};
use crate::workspace::Crate;

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Normal,
    Dev,
}

pub(crate) fn check(one: &Crate) -> Vec<Finding> {
    let place = format!("crates/{}/Cargo.toml", one.folder);
    let Some(floor) = floor(&one.folder) else {
        return vec![Finding::error(place, "is not in the floor table (crates/xtask/src/floors/table.rs)")];
    };
    let mut findings = Vec::new();

    let package = one.manifest.get("package").and_then(|package| package.get("name")).and_then(|name| name.as_str());
    let expected = if one.folder == "cachesql" || BESIDE.contains(&one.folder.as_str()) {
        one.folder.clone()
    } else {
        format!("cachesql-{}", one.folder)
    };
    let beside_with_prefix = BESIDE.contains(&one.folder.as_str()) && package == Some(&format!("cachesql-{expected}"));
    if package != Some(&expected) && !beside_with_prefix {
        findings.push(Finding::error(&place, format!("the package should be named `{expected}`")));
    }
    let inherits = one.manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
    if inherits != Some(true) {
        findings.push(Finding::error(&place, "lacks `[lints] workspace = true`"));
    }

    for (section, name) in dependencies(&one.manifest) {
        if let Some(import) = our_folder(&name) {
            let allowed = floor.may_import.contains(&import)
                || (section == Section::Dev && (DEV_ONLY.contains(&import) || import == one.folder));
            if !allowed {
                let message = if floor.may_import.is_empty() {
                    format!("`{}` may not import `{import}`: it imports none of our crates", one.folder)
                } else {
                    format!("`{}` may not import `{import}`, only {}", one.folder, floor.may_import.join(", "))
                };
                findings.push(Finding::error(&place, message));
            }
        } else if section == Section::Normal
            && !BESIDE.contains(&one.folder.as_str())
            && let Some(belongs) = BELONGS.iter().find(|belongs| belongs.dependency == name)
            && !belongs.to.contains(&one.folder.as_str())
        {
            findings.push(Finding::error(&place, format!("depends on `{name}`: {}", belongs.reason)));
        }
    }
    findings
}

/// The folder of a crate of ours, from the name of its package.
fn our_folder(package: &str) -> Option<&str> {
    match package.strip_prefix("cachesql-") {
        Some(folder) => Some(folder),
        None if package == "cachesql" || BESIDE.contains(&package) => Some(package),
        None => None,
    }
}

/// Names of the packages in all dependency sections, `[target.….dependencies]` included.
fn dependencies(manifest: &toml::Table) -> Vec<(Section, String)> {
    let mut found = Vec::new();
    let mut collect = |table: &toml::Table| {
        for (key, section) in [
            ("dependencies", Section::Normal),
            ("build-dependencies", Section::Normal),
            ("dev-dependencies", Section::Dev),
        ] {
            for (name, value) in table.get(key).and_then(toml::Value::as_table).into_iter().flatten() {
                let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
                found.push((section, package.to_owned()));
            }
        }
    };
    collect(manifest);
    for (_, target) in manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten() {
        if let Some(target) = target.as_table() {
            collect(target);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(folder: &str, manifest: &str) -> Vec<String> {
        let head = format!("[package]\nname = \"cachesql-{folder}\"\n[lints]\nworkspace = true\n");
        let manifest = format!("{head}{manifest}").parse().expect("a manifest");
        let one = Crate { folder: folder.to_owned(), manifest, files: Vec::new() };
        check(&one).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_the_table_allows_passes() {
        let manifest =
            "[dependencies]\ncachesql-types.workspace = true\ncachesql-table.workspace = true\ndatafusion = \"1\"";
        assert_eq!(messages("sql", manifest), Vec::<String>::new());
    }

    #[test]
    fn an_import_from_above_is_caught_wherever_it_hides() {
        let caught = ["`table` may not import `sql`, only types"];
        assert_eq!(messages("table", "[dependencies]\ncachesql-sql.workspace = true"), caught);
        assert_eq!(messages("table", "[build-dependencies]\ncachesql-sql = { path = \"../sql\" }"), caught);
        assert_eq!(messages("table", "[dev-dependencies]\ncachesql-sql.workspace = true"), caught);
        assert_eq!(messages("table", "[target.'cfg(unix)'.dependencies]\ncachesql-sql.workspace = true"), caught);
        assert_eq!(messages("table", "[dependencies]\nquiet = { package = \"cachesql-sql\", path = \"x\" }"), caught);
    }

    #[test]
    fn siblings_on_one_floor_do_not_meet() {
        assert_eq!(
            messages("group", "[dependencies]\ncachesql-sql.workspace = true"),
            ["`group` may not import `sql`, only types, table"]
        );
        assert_eq!(
            messages("types", "[dependencies]\ncachesql-table.workspace = true"),
            ["`types` may not import `table`: it imports none of our crates"]
        );
    }

    #[test]
    fn the_testbed_is_for_tests() {
        assert_eq!(messages("origin", "[dev-dependencies]\ntestbed.workspace = true"), Vec::<String>::new());
        assert_eq!(
            messages("origin", "[dependencies]\ntestbed.workspace = true"),
            ["`origin` may not import `testbed`, only types"]
        );
    }

    #[test]
    fn an_outside_crate_in_the_wrong_place_is_caught() {
        assert_eq!(
            messages("server", "[dependencies]\ndatafusion.workspace = true"),
            ["depends on `datafusion`: only `sql` knows the query engine"]
        );
        assert_eq!(messages("node", "[dev-dependencies]\ntoml.workspace = true"), Vec::<String>::new());
    }

    #[test]
    fn an_unknown_crate_and_a_wrong_name_are_caught() {
        assert!(messages("extra", "")[0].contains("not in the floor table"));
        let one = Crate {
            folder: "table".into(),
            manifest: "[package]\nname = \"tables\"\n[lints]\nworkspace = true".parse().expect("a manifest"),
            files: Vec::new(),
        };
        assert_eq!(check(&one)[0].message, "the package should be named `cachesql-table`");
    }

    #[test]
    fn a_crate_without_the_shared_lints_is_caught() {
        let one = Crate {
            folder: "table".into(),
            manifest: "[package]\nname = \"cachesql-table\"".parse().expect("a manifest"),
            files: Vec::new(),
        };
        assert_eq!(check(&one)[0].message, "lacks `[lints] workspace = true`");
    }
}
