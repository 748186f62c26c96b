//! A PostgreSQL server of a test's own: a fresh data directory, a free port on the loopback, a unix socket.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to answer.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The superuser of the server.
const USER: &str = "postgres";

/// A running server. It is stopped, and its directory removed, when this is dropped.
pub struct Postgres {
    // In order: the server is stopped in `drop`, before its directory goes.
    server: Child,
    directory: TempDir,
    programs: PathBuf,
    port: u16,
    databases: AtomicU32,
}

/// What differs from a plain server.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    /// Settings of `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// Lines of `pg_hba.conf`, which replace "everybody is trusted".
    pub access: Option<String>,
    /// Files that are put into the data directory before the server starts: name and content. Certificates and keys.
    pub files: Vec<(String, String)>,
}

impl Postgres {
    /// Starts a server. Panics, saying why, when there is none to start.
    pub fn start() -> Postgres {
        Postgres::start_with(&PostgresOptions::default())
    }

    /// The server that all tests of a process share while any of them holds it. Each uses a database of its own
    /// (`new_database`).
    pub fn shared() -> Arc<Postgres> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Postgres::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    /// Starts a server that differs from a plain one. Panics, saying why, when it does not start.
    pub fn start_with(options: &PostgresOptions) -> Postgres {
        let programs = installed_programs();
        let directory = tempfile::Builder::new().prefix("postgres-").tempdir().expect("a directory for the server");
        let owner = owner_of_server(directory.path());
        let data = directory.path().join("data");
        run(as_owner(&programs.join("initdb"), owner)
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username", USER, "--pgdata"])
            .arg(&data));
        write_files(&data, options, owner);
        // A port that was free a moment ago may be taken by now: then the server ends, and another is tried.
        let port = free_port();
        let server = spawn_server(&programs, &data, directory.path(), port, options, owner);
        let mut started = Postgres { server, port, directory, programs, databases: AtomicU32::new(0) };
        for last in [false, false, true] {
            match started.wait_until_ready() {
                Ok(()) => break,
                Err(why) if last => panic!("PostgreSQL does not start: {why}\n{}", started.log()),
                Err(_) => {
                    started.stop();
                    started.port = free_port();
                    started.server =
                        spawn_server(&started.programs, &data, started.directory.path(), started.port, options, owner);
                }
            }
        }
        started
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of the unix socket.
    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    /// `postgres://postgres@127.0.0.1:port/database`.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database and returns its name.
    pub fn new_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs statements by psql. Panics with what the server said when one fails.
    pub fn execute(&self, database: &str, sql: &str) {
        self.psql(database, sql);
    }

    /// What psql prints for a query: a line a row, `|` between fields, nothing for NULL.
    pub fn query(&self, database: &str, sql: &str) -> String {
        self.psql(database, sql)
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn psql(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
            .args(["--username", USER, "--dbname", database, "--port", &self.port.to_string(), "--host"])
            .arg(self.directory.path())
            .env("PGCLIENTENCODING", "UTF8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql starts");
        let mut input = psql.stdin.take().expect("its input is a pipe");
        let sql = sql.to_owned();
        // From a thread: psql may answer before it has read everything.
        let writer = std::thread::spawn(move || input.write_all(sql.as_bytes()));
        let output = psql.wait_with_output().expect("psql ends");
        let _ = writer.join();
        assert!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("psql prints UTF-8")
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.server.try_wait() {
                return Err(format!("it ended with {status}"));
            }
            let asked = Command::new(self.programs.join("pg_isready"))
                .args(["--quiet", "--port", &self.port.to_string(), "--host"])
                .arg(self.directory.path())
                .status();
            if asked.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("it does not answer within {} s", START_TIMEOUT.as_secs()))
    }

    fn stop(&mut self) {
        // Immediate shutdown: nothing of it is needed any more.
        let pid = self.server.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &pid]).status();
        let _ = self.server.wait();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where the programs are: Debian's place for the newest version, else those on the path.
fn installed_programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .map(|entry| (entry.file_name().to_string_lossy().parse().unwrap_or(0), entry.path().join("bin")))
        .filter(|(_, programs)| programs.join("initdb").exists())
        .collect();
    found.sort();
    if let Some((_, programs)) = found.pop() {
        return programs;
    }
    let output = Command::new("sh").args(["-c", "command -v initdb"]).output().expect("a shell");
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    match path.parent() {
        Some(programs) if output.status.success() => programs.to_owned(),
        _ => panic!("PostgreSQL is not installed: this test needs it (Debian: apt-get install postgresql)"),
    }
}

/// User and group that the server runs as. PostgreSQL refuses to run as root, and gets the user `postgres` then.
fn owner_of_server(directory: &Path) -> Option<(u32, u32)> {
    let id = |option: &str, user: &str| -> Option<u32> {
        let output = Command::new("id").args([option, user]).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    };
    let me = Command::new("id").arg("-u").output().expect("id tells the user");
    if String::from_utf8_lossy(&me.stdout).trim() != "0" {
        return None;
    }
    let (Some(user), Some(group)) = (id("-u", USER), id("-g", USER)) else {
        panic!("this runs as root and there is no user postgres to run PostgreSQL as");
    };
    chown(directory, Some(user), Some(group)).expect("root may give directories away");
    Some((user, group))
}

fn as_owner(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    // The directory that the test runs in may be closed to the server's user.
    command.current_dir("/").stdin(Stdio::null());
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn write_files(data: &Path, options: &PostgresOptions, owner: Option<(u32, u32)>) {
    let access = options.access.iter().map(|content| ("pg_hba.conf", content));
    let files = options.files.iter().map(|(name, content)| (name.as_str(), content));
    for (name, content) in files.chain(access) {
        let path = data.join(name);
        fs::write(&path, content).expect("the data directory can be written");
        // PostgreSQL refuses keys that others may read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its permissions can be set");
        if let Some((user, group)) = owner {
            chown(&path, Some(user), Some(group)).expect("root may give files away");
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
    listener.local_addr().expect("it has an address").port()
}

fn spawn_server(
    programs: &Path,
    data: &Path,
    directory: &Path,
    port: u16,
    options: &PostgresOptions,
    owner: Option<(u32, u32)>,
) -> Child {
    let log = fs::File::create(directory.join("log")).expect("a log");
    let mut command = as_owner(&programs.join("postgres"), owner);
    command.arg("-D").arg(data).args(["-p", &port.to_string()]);
    let socket = directory.display().to_string();
    let plain = [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", socket.as_str()),
        ("fsync", "off"),
        ("synchronous_commit", "off"),
        ("full_page_writes", "off"),
        ("timezone", "UTC"),
        ("max_connections", "50"),
    ];
    let settings = options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in plain.into_iter().chain(settings) {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    command.stdout(Stdio::null()).stderr(log).spawn().expect("postgres starts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_and_is_gone_afterwards() {
        let server = Postgres::start();
        let database = server.new_database();
        assert_eq!(server.query(&database, "SELECT 1, NULL, '汉字'"), "1||汉字\n");
        let (directory, port) = (server.directory.path().to_owned(), server.port());
        drop(server);
        assert!(!directory.exists());
        assert!(TcpListener::bind(("127.0.0.1", port)).is_ok());
    }
}
