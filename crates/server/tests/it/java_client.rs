//! A program that was written for the original server, in its own language.

use std::process::Command;

use crate::fixture::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_java_client_of_the_original_does_not_notice() {
    if Command::new("java").arg("-version").output().is_err() {
        eprintln!("no java here (apt install default-jdk-headless); the client of the original was not run");
        return;
    }
    let server = Server::start().await;
    let base = format!("http://{}", server.address);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java/OriginalClient.java");
    let run = move || Command::new("java").args(["-Dfile.encoding=UTF-8", "-Xshare:auto", source, &base]).output();
    let output = tokio::task::spawn_blocking(run).await.expect("no panic").expect("java runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok");
}
