//! TLS to PostgreSQL in each of libpq's modes, against certificates made here by the openssl program.

use std::fs;
use std::path::Path;
use std::process::Command;

use cachesql_origin::{Origin, OriginConfig, OriginError, OriginUrl, Secret};
use testbed::{Postgres, PostgresOptions};

use crate::reading::{load, query};

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    let output = output.expect("this test needs the openssl program (Debian: apt-get install openssl)");
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority (`ca.pem`), a server's key and certificate for the name localhost, a client's, and another authority.
fn make_certificates(directory: &Path) {
    for name in ["ca", "other"] {
        openssl(
            directory,
            &format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout {name}.key -out {name}.pem -subj /CN={name}"
            ),
        );
    }
    for (name, subject) in [("server", "/CN=localhost"), ("client", "/CN=tls_user")] {
        openssl(
            directory,
            &format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {name}.key -out {name}.csr -subj {subject}"
            ),
        );
        fs::write(directory.join("ext"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
        openssl(
            directory,
            &format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out {name}.pem -extfile ext"
            ),
        );
    }
}

fn server_with(directory: &Path, certificate: &str, key: &str, access: &str) -> Postgres {
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Postgres::start_with(&PostgresOptions {
        settings: vec![
            setting("ssl", "on"),
            setting("ssl_cert_file", "server.pem"),
            setting("ssl_key_file", "server.key"),
            setting("ssl_ca_file", "ca.pem"),
        ],
        access: Some(access.to_owned()),
        files: vec![
            ("server.pem".into(), read(certificate)),
            ("server.key".into(), read(key)),
            ("ca.pem".into(), read("ca.pem")),
        ],
    })
}

async fn encrypted(url: &str) -> Result<bool, OriginError> {
    let url = OriginUrl::parse(url)?;
    let origin = Origin::new(OriginConfig { url, user: None, password: Some(Secret::new("hunter2")) })?;
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    load(&origin, &query(sql)).await.map(|(_, rows)| rows[0][0].as_deref() == Some("t"))
}

fn refused(outcome: Result<bool, OriginError>) -> String {
    match outcome {
        Err(OriginError::Tls { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn every_mode_proves_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let access = "local all all trust\nhostssl all secured all scram-sha-256\nhostssl all tls_user all cert\nhost all all all trust";
    let server = server_with(directory.path(), "server.pem", "server.key", access);
    server.execute("postgres", "CREATE ROLE secured LOGIN PASSWORD 'hunter2'; CREATE ROLE tls_user LOGIN");
    let port = server.port();
    let at = |host: &str, parameters: &str| format!("postgres://secured@{host}:{port}/postgres?{parameters}");
    let ca = directory.path().join("ca.pem").display().to_string();
    let other = directory.path().join("other.pem").display().to_string();

    assert_eq!(encrypted(&format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")).await, Ok(false));
    assert_eq!(encrypted(&at("127.0.0.1", "")).await, Ok(true));
    assert_eq!(encrypted(&at("127.0.0.1", "sslmode=require")).await, Ok(true));
    // SCRAM bound to the certificate.
    assert_eq!(encrypted(&at("127.0.0.1", "sslmode=require&channel_binding=require")).await, Ok(true));
    assert_eq!(encrypted(&at("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={ca}"))).await, Ok(true));
    assert_eq!(encrypted(&at("localhost", &format!("sslmode=verify-full&sslrootcert={ca}"))).await, Ok(true));
    let jdbc = format!("jdbc:postgresql://localhost:{port}/postgres?user=secured&ssl=true&sslrootcert={ca}");
    assert_eq!(encrypted(&jdbc).await, Ok(true));

    let reason = refused(encrypted(&at("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={ca}"))).await);
    assert!(reason.contains("not valid for name"), "{reason}");
    for mode in ["require", "verify-ca", "verify-full"] {
        let reason = refused(encrypted(&at("localhost", &format!("sslmode={mode}&sslrootcert={other}"))).await);
        assert!(reason.contains("UnknownIssuer"), "{mode}: {reason}");
    }
    refused(encrypted(&at("localhost", "sslmode=verify-full")).await);
    let reason = refused(encrypted(&at("localhost", "sslmode=verify-full&sslrootcert=/nowhere.pem")).await);
    assert!(reason.contains("/nowhere.pem"), "{reason}");

    let client = |name: &str| directory.path().join(name).display().to_string();
    let with_certificate = format!(
        "postgres://tls_user@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={ca}&sslcert={}&sslkey={}",
        client("client.pem"),
        client("client.key")
    );
    assert_eq!(encrypted(&with_certificate).await, Ok(true));
}

#[tokio::test]
async fn a_self_signed_certificate_can_be_its_own_root() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    openssl(
        directory.path(),
        "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout self.key -out self.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost",
    );
    let server =
        server_with(directory.path(), "self.pem", "self.key", "local all all trust\nhostssl all all all trust");
    let port = server.port();
    let root = directory.path().join("self.pem").display().to_string();
    let url = |host: &str| format!("postgres://postgres@{host}:{port}/postgres?sslmode=verify-full&sslrootcert={root}");
    assert_eq!(encrypted(&url("localhost")).await, Ok(true));
    refused(encrypted(&url("127.0.0.1")).await);
    // The server takes no connection without TLS.
    let plain = encrypted(&format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")).await;
    assert!(matches!(plain, Err(OriginError::Authentication { .. } | OriginError::Connect { .. })), "{plain:?}");
}
