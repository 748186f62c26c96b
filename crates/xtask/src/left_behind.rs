//! Nothing stays behind a test run: no process, and so no port, and no temporary file.
//!
//! The run gets a temporary folder and a mark in its environment. A process that still carries the mark afterwards, or
//! still works in the folder, was left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::{Context, Failure, Outcome};

const MARK: &str = "CACHESQL_CHECK";
/// Time that processes have to end after the tests that started them.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) struct Watch {
    mark: String,
    folder: PathBuf,
}

impl Watch {
    pub(crate) fn start() -> Outcome<Self> {
        let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos());
        let mark = format!("{}-{nanos}", std::process::id());
        let folder = std::env::temp_dir().join(format!("cachesql-check-{mark}"));
        fs::create_dir(&folder).context(|| folder.display().to_string())?;
        let watch = Self { mark, folder };
        // A database that root starts runs as another user, and needs room here too.
        fs::set_permissions(&watch.folder, fs::Permissions::from_mode(0o1777))
            .context(|| watch.folder.display().to_string())?;
        Ok(watch)
    }

    /// Marks a command, and with it all that it starts.
    pub(crate) fn mark<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(MARK, &self.mark).env("TMPDIR", &self.folder)
    }

    /// Fails, naming what was left; ends processes that were.
    pub(crate) fn finish(self) -> Outcome<()> {
        self.finish_within(GRACE)
    }

    fn finish_within(self, grace: Duration) -> Outcome<()> {
        let deadline = Instant::now() + grace;
        let mut processes = self.processes();
        while !processes.is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(100));
            processes = self.processes();
        }
        let mut left: Vec<String> = Vec::new();
        for (id, command) in &processes {
            left.push(format!("process {id}: {command}"));
            // It may be gone by now, which is as well.
            let _ = Command::new("kill").arg(id.to_string()).status();
        }
        for entry in fs::read_dir(&self.folder).context(|| self.folder.display().to_string())?.flatten() {
            left.push(entry.path().display().to_string());
        }
        if left.is_empty() { Ok(()) } else { Err(Failure::new(format!("tests left behind:\n  {}", left.join("\n  ")))) }
    }

    fn processes(&self) -> Vec<(u32, String)> {
        let own = std::process::id();
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok())
            .filter(|id| *id != own)
            .filter_map(|id| self.is_ours(&PathBuf::from(format!("/proc/{id}"))).map(|command| (id, command)))
            .collect()
    }

    /// The command line of a process that belongs to the run. PostgreSQL writes over its environment, so what it works
    /// on counts as well.
    fn is_ours(&self, process: &Path) -> Option<String> {
        let command = fs::read(process.join("cmdline")).ok().filter(|command| !command.is_empty())?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        let mark = format!("{MARK}={}", self.mark);
        let marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        let inside = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.folder));
        (marked || inside || command.contains(&*self.folder.to_string_lossy())).then_some(command)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Nothing more can be done about a folder that cannot be removed; the machine's own cleaning takes it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_clean_run_passes_and_its_folder_is_gone() {
        let watch = Watch::start().expect("a watch");
        let folder = watch.folder.clone();
        let mut command = Command::new("sh");
        command.args(["-c", "echo x > $TMPDIR/x && rm $TMPDIR/x"]);
        assert!(watch.mark(&mut command).status().expect("sh").success());
        watch.finish().expect("nothing is left");
        assert!(!folder.exists());
    }

    #[test]
    fn a_file_that_is_left_is_named() {
        let watch = Watch::start().expect("a watch");
        let mut command = Command::new("sh");
        command.args(["-c", "echo x > $TMPDIR/forgotten"]);
        assert!(watch.mark(&mut command).status().expect("sh").success());
        let folder = watch.folder.clone();
        assert!(watch.finish().is_err_and(|failure| failure.to_string().contains("forgotten")));
        assert!(!folder.exists());
    }

    #[test]
    fn a_process_that_is_left_is_named_and_ended() {
        let watch = Watch::start().expect("a watch");
        let mut command = Command::new("sleep");
        let mut child = watch.mark(command.arg("300")).stdout(Stdio::null()).spawn().expect("sleep");
        // The kernel shows the environment of a process a little after it has started.
        while watch.processes().is_empty() {
            sleep(Duration::from_millis(1));
        }
        let failure = watch.finish_within(Duration::from_millis(200)).expect_err("a process is left").to_string();
        assert!(failure.contains("sleep 300"), "{failure}");
        // It was ended, else this would wait five minutes.
        assert!(!child.wait().expect("its end").success());
    }
}
