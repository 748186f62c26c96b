//! Programs in Java: one that was written for the original server, and the routing client that is for applications of it.

use std::path::Path;
use std::process::{Command, Output};

use crate::fixture::Server;

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-version").output().is_ok();
    if !found {
        eprintln!("no {program} here (apt install default-jdk-headless); a client in Java was NOT tested");
    }
    found
}

/// Runs a command on a thread where it may block.
async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("it runs")
}

/// Both outputs: a program that hangs up in the middle says why on either.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_java_client_of_the_original_does_not_notice() {
    if !has("java") {
        return;
    }
    let server = Server::start().await;
    let mut java = Command::new("java");
    java.args(["-Dfile.encoding=UTF-8", "-Xshare:auto"]);
    java.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java/OriginalClient.java"));
    java.arg(format!("http://{}", server.address));
    let output = run(java).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok");
}

/// Two nodes are two groups to it; those that fail are its own test's.
#[tokio::test(flavor = "multi_thread")]
async fn the_routing_client_in_java_routes_and_fails_over() {
    if !has("java") || !has("javac") {
        return;
    }
    let (insurance, finance) = (Server::start().await, Server::start().await);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/java");
    let classes = tempfile::tempdir().expect("temporary folder");
    let mut javac = Command::new("javac");
    // The oldest Java that applications of the original run on. Newer compilers warn of its age, which is not asked here.
    javac.args(["--release", "8", "-encoding", "UTF-8", "-Xlint:all", "-Xlint:-options", "-Werror", "-d"]);
    javac.arg(classes.path()).args(["CacheSQLClient.java", "CacheSQLClientTest.java"].map(|name| sources.join(name)));
    let output = run(javac).await;
    assert!(output.status.success() && said(&output).is_empty(), "{}", said(&output));
    let mut java = Command::new("java");
    java.args(["-Xshare:auto", "-cp"]).arg(classes.path()).arg("CacheSQLClientTest");
    java.args([&insurance, &finance].map(|server| format!("http://{}", server.address)));
    let output = run(java).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok");
}
