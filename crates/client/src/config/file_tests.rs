//! `cachesql.properties`: what is read, and what is refused on which line.

use super::*;
use crate::config::Consistency;
use crate::policy::Policy;

fn problems(text: &str) -> Vec<String> {
    match read_properties("c.properties", text) {
        Err(ConfigError::Invalid(problems)) => problems.iter().map(ToString::to_string).collect(),
        other => panic!("expected problems, found {other:?}"),
    }
}

const SEED: &str = "# 组 insurance
cachesql.group.insurance.master=http://192.168.1.10:8080
cachesql.group.insurance.slaves=http://192.168.1.11:8080,http://192.168.1.12:8080
cachesql.group.insurance.tables=KCA2,KCA3

cachesql.group.finance.master=http://192.168.2.10:8080
cachesql.group.finance.slaves=http://192.168.2.11:8080
cachesql.group.finance.tables=KCA4
db.url=jdbc:postgresql://db/hr
";

#[test]
fn the_seeds_file_is_read() {
    let read = read_properties("c.properties", SEED).expect("sound");
    let group = read.groups.iter().find(|group| group.name == "insurance").expect("there");
    let members: Vec<String> = group.members.iter().map(ToString::to_string).collect();
    assert_eq!(members, ["http://192.168.1.10:8080", "http://192.168.1.11:8080", "http://192.168.1.12:8080"]);
    assert_eq!(group.leader, group.members.first().cloned());
    assert_eq!(group.tables, ["KCA2", "KCA3"]);
    assert_eq!(read.groups.len(), 2);
    assert!(read.names.iter().any(|(name, _)| name == "192.168.2.11:8080"));
    assert_eq!(read.settings.policy, None);
}

#[test]
fn options_are_read() {
    let text = "cachesql.policy = nearest\ncachesql.consistency=bounded=250ms\ncachesql.connectTimeout=100\n\
                cachesql.readTimeout=0\ncachesql.deadline=900\ncachesql.token = abc\n";
    let settings = read_properties("c", text).expect("sound").settings;
    assert_eq!(settings.policy, Some(Policy::Nearest));
    assert_eq!(settings.consistency, Some(Consistency::Bounded(Duration::from_millis(250))));
    assert_eq!(settings.connect_timeout, Some(Duration::from_millis(100)));
    assert_eq!(settings.read_timeout, Some(Duration::ZERO));
    assert_eq!(settings.deadline, Some(Duration::from_millis(900)));
    assert_eq!(settings.authorization.expect("given").as_bytes(), b"Bearer abc");
}

#[test]
fn a_table_of_two_groups_is_refused_with_both_and_the_line() {
    let expected = r#"c.properties:8: table "KCA3" is in two groups: "finance", line 10, and "insurance", line 4"#;
    // Groups are read in the order of their names, and the later one is where it goes wrong.
    let text = format!("{SEED}cachesql.group.finance.tables=KCA4,KCA3\n");
    assert_eq!(problems(&text), [expected.replace(":8:", ":4:")]);
    let other_case = SEED.replace("tables=KCA4", "tables=kca2");
    assert_eq!(
        problems(&other_case),
        [r#"c.properties:4: table "KCA2" is in two groups: "finance" (as "kca2"), line 8, and "insurance", line 4"#]
    );
}

#[test]
fn a_group_without_a_master_is_refused() {
    let text = "\ncachesql.group.g.slaves=http://a:1\ncachesql.group.g.tables=T\n";
    assert_eq!(problems(text), ["c.properties:2: group \"g\" has no master: cachesql.group.g.master is one URL"]);
    let text = "cachesql.group.g.master=http://a:1,http://b:1\n";
    assert_eq!(
        problems(text),
        ["c.properties:1: group \"g\" has more than one master: cachesql.group.g.master is one URL"]
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "cachesql.group.g.master=localhost:8080\ncachesql.colour=red\ncachesql.policy=Seed\n\
                cachesql.readTimeout=1s\ncachesql.group.g.leader=x\nx=\\u12\ncachesql.token=a b\ncachesql.deadline=0\n";
    let problems = problems(text);
    let lines: Vec<&str> = problems.iter().map(|p| p.split(": ").next().expect("a place")).collect();
    let expected: Vec<String> = (1..=8).map(|line| format!("c.properties:{line}")).collect();
    assert_eq!(lines, expected);
    assert!(!problems.join("\n").contains("a b"), "secrets are not told");
}

#[test]
fn who_asks_is_said_one_way() {
    let both = "cachesql.token=a\ncachesql.user=u\n";
    assert_eq!(problems(both), ["c.properties:1: cachesql.token and cachesql.user: one of them, not both"]);
    assert_eq!(
        problems("\ncachesql.password=x\n"),
        ["c.properties:2: cachesql.user is missing, but there is a cachesql.password"]
    );
    let basic = read_properties("c", "cachesql.user=Aladdin\ncachesql.password=open sesame\n").expect("sound");
    assert_eq!(basic.settings.authorization.expect("given").as_bytes(), b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}
