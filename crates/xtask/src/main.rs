//! Set-up, checks and benches of CacheSQL: `cargo xtask test|floors|deny|docs|setup|faults|sim|bench`.

mod bench;
mod checks;
mod data;
mod deny;
mod failure;
mod floors;
mod left_behind;
mod licence;
mod setup;
mod simulate;
mod steps;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use failure::{Failure, Outcome};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test                everything: set-up, fmt, floors, deny, clippy, doc, build, tests (.ci/run does this)
  test --quick [-p CRATE]…
                      the inner loop: fmt, floors, clippy and unit tests, of the named crates only
  floors              imports between crates, files, ARCHITECTURE.md, links of the documents
  deny                licences, bans and sources of all dependencies, as deny.toml says
  docs                writes the documents that are made from the program's own definitions
  setup               installs what tests need (root on Debian), or says what to install
  faults [ROUNDS]     the whole fault matrix with real processes, held to its times, so many rounds (1)
  sim [--seeds N] [--first S]
                      so many seeds of the simulator (500), from S on (0); says how to run one again that found something
  bench [NAME]… [--rounds N] [--seconds N]
                      measures CacheSQL beside its peers and writes bench/results.md
  bench --list        the names of the benches";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Outcome<()> {
    let root = root()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => checks::everything(&root),
        ["test", "--quick", rest @ ..] => checks::quick(&root, rest),
        ["floors"] => floors::report(&root),
        ["deny"] => deny::report(&root),
        ["docs"] => checks::docs(&root),
        ["setup"] => {
            setup::for_tests().and_then(|()| data::flights(&root)).map(|folder| println!("{}", folder.display()))
        }
        ["faults"] => checks::faults(&root, 1),
        ["faults", rounds] => {
            let wrong = || Failure::new(format!("faults {rounds}: expected a number of rounds"));
            checks::faults(&root, rounds.parse().map_err(|_| wrong())?)
        }
        ["sim", rest @ ..] => simulate::run(&root, rest),
        ["bench", rest @ ..] => bench::run(&root, rest),
        ["help" | "--help" | "-h"] | [] => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(Failure::new(format!("no such command: {}\n\n{USAGE}", other.join(" ")))),
    }
}

/// The workspace that this xtask was built from.
fn root() -> Outcome<PathBuf> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    match own.ancestors().nth(2) {
        Some(root) if root.join("crates").is_dir() => Ok(root.to_path_buf()),
        _ => Err(Failure::new(format!("{} is not in a workspace", own.display()))),
    }
}
