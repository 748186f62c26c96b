//! A PostgreSQL of the bench's own, in a temporary folder, ended and removed with this value.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::figures::Sample;
use super::process::family_cpu_seconds;
use crate::failure::{Context, Failure, Outcome};
use crate::setup::{find, is_root};
use crate::steps::output;

pub(crate) struct Postgres {
    child: Child,
    data: PathBuf,
    pub(crate) port: u16,
}

impl Postgres {
    pub(crate) fn start(work: &Path) -> Outcome<Self> {
        let data = work.join("postgres");
        std::fs::create_dir_all(&data).context(|| data.display().to_string())?;
        if is_root() {
            output(Command::new("chown").arg("postgres").arg(&data))?;
        }
        output(
            as_owner("initdb")?
                .args(["--username=bench", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D"])
                .arg(&data),
        )?;
        let port = free_port()?;
        let log = File::create(work.join("postgres.log")).context(|| "postgres.log".to_owned())?;
        let child = as_owner("postgres")?
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", &port.to_string()])
            .args(["-c", "shared_buffers=1GB", "-c", "max_wal_size=4GB", "-c", "fsync=off"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().context(|| "postgres.log".to_owned())?)
            .stderr(log)
            .spawn()
            .context(|| "postgres".to_owned())?;
        let server = Self { child, data, port };
        let deadline = Instant::now() + Duration::from_secs(30);
        while server.sql("SELECT 1").is_err() {
            if Instant::now() > deadline {
                let log = std::fs::read_to_string(work.join("postgres.log")).unwrap_or_default();
                return Err(Failure::new(format!("postgres does not start:\n{log}")));
            }
            sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    pub(crate) fn version(&self) -> String {
        self.sql("SHOW server_version").map_or_else(
            |_| "PostgreSQL".to_owned(),
            |version| format!("PostgreSQL {}", version.split_whitespace().next().unwrap_or_default()),
        )
    }

    pub(crate) fn psql(&self) -> Command {
        let mut command = Command::new(find("psql").unwrap_or_else(|| "psql".into()));
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "bench", "-d", "postgres", "-p"]);
        command.arg(self.port.to_string());
        command
    }

    /// Runs statements and returns their rows, unaligned.
    pub(crate) fn sql(&self, sql: &str) -> Outcome<String> {
        output(self.psql().args(["-A", "-t", "-c", sql]))
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://bench@127.0.0.1:{}/postgres", self.port)
    }

    /// CPU time of the server and all its backends so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        family_cpu_seconds(self.server_id())
    }

    /// The server itself; as root the child is only what changed the user.
    fn server_id(&self) -> u32 {
        let file = std::fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        file.lines().next().and_then(|id| id.trim().parse().ok()).unwrap_or_else(|| self.child.id())
    }

    /// Prepared statements of a pgbench script, over some connections: transactions a second.
    pub(crate) fn pgbench(&self, script: &Path, connections: u32, seconds: u64) -> Outcome<Sample> {
        let before = self.cpu_seconds();
        let said = output(
            Command::new(find("pgbench").unwrap_or_else(|| "pgbench".into()))
                .args([
                    "-n",
                    "-M",
                    "prepared",
                    "-j",
                    "1",
                    "-h",
                    "127.0.0.1",
                    "-U",
                    "bench",
                    "-p",
                    &self.port.to_string(),
                ])
                .args(["-c", &connections.to_string(), "-T", &seconds.to_string(), "-f"])
                .arg(script)
                .arg("postgres"),
        )?;
        // The backends' time is the server's once it has taken note of their end.
        sleep(Duration::from_millis(300));
        let cpu = self.cpu_seconds() - before;
        let (rate, transactions) = read(&said)?;
        Ok(Sample { value: rate, cpu_us: Some(cpu * 1e6 / transactions) })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT is an immediate shutdown of the server with all its backends.
        let _ = Command::new("kill").args(["-QUIT", &self.server_id().to_string()]).status();
        let _ = self.child.wait();
        // The next bench of this run starts afresh; what stays goes with the run's folder.
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// A program of PostgreSQL, run as a user that it accepts: it refuses to be root.
fn as_owner(program: &str) -> Outcome<Command> {
    let path = find(program).ok_or_else(|| Failure::new(format!("{program} is not here")))?;
    if !is_root() {
        return Ok(Command::new(path));
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(path).current_dir("/");
    Ok(command)
}

fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context(|| "a free port".to_owned())?;
    Ok(listener.local_addr().context(|| "a free port".to_owned())?.port())
}

fn read(said: &str) -> Outcome<(f64, f64)> {
    let field = |start: &str| {
        let rest = said.lines().find_map(|line| line.strip_prefix(start))?;
        rest.split_whitespace().next()?.split('/').next()?.parse::<f64>().ok()
    };
    match (field("tps = "), field("number of transactions actually processed: ")) {
        (Some(rate), Some(transactions)) if transactions > 0.0 => Ok((rate, transactions)),
        _ => Err(Failure::new(format!("pgbench said:\n{said}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_says_is_read() {
        let said = "transaction type: x\nnumber of transactions actually processed: 123456\n\
            number of failed transactions: 0 (0.000%)\nlatency average = 0.5 ms\n\
            tps = 24691.230000 (without initial connection time)\n";
        assert_eq!(read(said).expect("figures"), (24_691.23, 123_456.0));
        assert!(read("connection refused").is_err());
    }
}
