//! Files that cannot be used, as a caller sees them.

use cachesql_client::{Client, ConfigError, Error};

fn refused(name: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(name);
    std::fs::write(&file, text).expect("written");
    match Client::open(&file) {
        Err(Error::Config(ConfigError::Invalid(problems))) => {
            assert!(problems.iter().all(|problem| problem.file == file.display().to_string()));
            problems.into_iter().map(|problem| format!("{}: {}", problem.line, problem.message)).collect()
        }
        other => panic!("expected problems, found {other:?}"),
    }
}

#[test]
fn a_table_in_two_groups_is_refused_with_line_and_groups() {
    let text = "cachesql.group.a.master=http://a:1\ncachesql.group.a.tables=T,U\ncachesql.group.b.master=http://b:1\n\
                cachesql.group.b.tables=V,\\\n  T\n";
    assert_eq!(refused("c.properties", text), [r#"4: table "T" is in two groups: "a", line 2, and "b", line 4"#]);
    let text = "[nodes.a]\nhttp = \"a:1\"\n[groups.g]\nmembers = [\"a\"]\n[groups.h]\nmembers = [\"a\"]\n\
                [tables.T]\ngroup = \"g\"\n[tables.t]\ngroup = \"h\"\n";
    assert_eq!(refused("c.toml", text), [r#"9: table "t" is in two groups: "g" (as "T"), line 7, and "h", line 9"#]);
}

#[test]
fn what_is_wrong_has_its_line() {
    let text = "# groups\ncachesql.group.a.slaves=http://a:1\n\ncachesql.readTimeout=soon\nbroken=\\u00\n";
    let expected = [
        r#"2: group "a" has no master: cachesql.group.a.master is one URL"#,
        r#"4: cachesql.readTimeout: expected a number of milliseconds, found "soon""#,
        r"5: \u00 is not \u and four hexadecimal digits",
    ];
    assert_eq!(refused("c.properties", text), expected);
    assert!(refused("c.toml", "[nodes.a]\nhttp = 1\n")[0].starts_with("2: "));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Client::open("/nowhere/cachesql.properties").expect_err("not there");
    assert!(
        matches!(&error, Error::Config(ConfigError::Unreadable { file, .. }) if file == "/nowhere/cachesql.properties")
    );
    assert!(error.to_string().starts_with("/nowhere/cachesql.properties: "), "{error}");
}
