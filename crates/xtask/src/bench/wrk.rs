//! wrk, one thread and 64 connections, asking for random keys.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::figures::Sample;
use crate::failure::{Context, Failure, Outcome};
use crate::steps::output;

pub(crate) const CONNECTIONS: u32 = 64;
/// Requests that are made ready before a round, so that making them costs the round nothing.
const REQUESTS: u32 = 20_000;

pub(crate) struct Load<'a> {
    pub(crate) address: &'a str,
    /// What the key is put behind.
    pub(crate) path: &'a str,
    /// Keys run from 1 to this.
    pub(crate) keys: u64,
    pub(crate) seconds: u64,
}

/// Runs one round; `cpu_seconds` reads the server's CPU time.
pub(crate) fn run(load: &Load<'_>, work: &Path, cpu_seconds: &dyn Fn() -> f64) -> Outcome<Sample> {
    let Load { address, path, keys, seconds } = load;
    let script = work.join("keys.lua");
    let text = format!(
        "local requests, at = {{}}, 0\n\
         function init(args)\n  math.randomseed(4711)\n  for i = 1, {REQUESTS} do\n    \
         requests[i] = wrk.format('GET', '{path}' .. math.random(1, {keys}))\n  end\nend\n\
         function request()\n  at = at % {REQUESTS} + 1\n  return requests[at]\nend\n"
    );
    fs::write(&script, text).context(|| script.display().to_string())?;
    let before = cpu_seconds();
    let said = output(
        Command::new("wrk")
            .args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "-s"])
            .arg(&script)
            .arg(format!("http://{address}/")),
    )?;
    let cpu = cpu_seconds() - before;
    let (rate, requests) = read(&said)?;
    Ok(Sample { value: rate, cpu_us: Some(cpu * 1e6 / requests) })
}

/// Requests a second, and requests in all; an error or an answer other than 2xx is a failure.
fn read(said: &str) -> Outcome<(f64, f64)> {
    let trouble = said.lines().find(|line| line.contains("Non-2xx") || line.contains("Socket errors"));
    if let Some(line) = trouble {
        return Err(Failure::new(format!("wrk: {}", line.trim())));
    }
    let rate = said.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse::<f64>().ok());
    let requests = said.lines().find_map(|line| {
        let (count, rest) = line.trim().split_once(' ')?;
        if rest.starts_with("requests in") { count.parse::<f64>().ok() } else { None }
    });
    match (rate, requests) {
        (Some(rate), Some(requests)) if requests > 0.0 => Ok((rate, requests)),
        _ => Err(Failure::new(format!("wrk said:\n{said}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Running 5s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n  \
        774925 requests in 5.00s, 96.81MB read\nRequests/sec: 154932.11\nTransfer/sec:     19.35MB\n";

    #[test]
    fn what_wrk_says_is_read() {
        assert_eq!(read(SAID).expect("figures"), (154_932.11, 774_925.0));
    }

    #[test]
    fn answers_that_are_errors_do_not_count_as_a_rate() {
        assert!(read(&format!("{SAID}  Non-2xx or 3xx responses: 12\n")).is_err());
        assert!(read(&format!("  Socket errors: connect 0, read 3, write 0, timeout 0\n{SAID}")).is_err());
        assert!(read("").is_err());
    }
}
