//! Configuration: `cachesql.toml`, the original server's `config.properties`, and the routing client's
//! `cachesql.properties`. Everything that is wrong is reported at once, each with file, line and column.

mod document;
mod model;
pub mod options;
pub mod original;
mod original_keys;
mod problem;
#[cfg(test)]
mod properties_tests;
mod reader;
pub mod reference;
pub mod units;

use std::io::Read as _;
use std::path::Path;

use cachesql_types::limits;
pub use cachesql_types::properties;

pub use model::{
    Configuration, GroupSection, LimitsSection, NodeSection, OriginSection, PlacedSecret, Refresh, Secret,
    TableSection, TableSource,
};
pub use problem::{ConfigError, Place, Problem};

/// Reads and checks a configuration file. A name that ends in `.properties` is read as Java properties, any other as TOML.
/// Secrets, origins and the tables' files are not opened.
pub fn read_file(path: &Path) -> Result<Configuration, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { file: path.display().to_string(), reason };
    let file = std::fs::File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let mut bytes = Vec::new();
    file.take(limits::CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > limits::CONFIG_BYTES {
        let most = units::write_size(limits::CONFIG_BYTES);
        return Err(unreadable(format!("it is larger than {most}, the most that a configuration may be")));
    }
    read_bytes(path, &bytes)
}

/// Reads and checks the bytes of a configuration file; `path` tells its kind, and is for messages and relative paths.
pub fn read_bytes(path: &Path, bytes: &[u8]) -> Result<Configuration, ConfigError> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("properties")) {
        return original::read(path, &properties::decode(bytes));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => document::read(path, text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let text = String::from_utf8_lossy(valid);
            let mut findings = problem::Findings::new(path, &text);
            findings.add(text.len()..text.len(), "this is not UTF-8");
            findings.conclude(()).and_then(|()| Err(ConfigError::Unusable("not UTF-8".into())))
        }
    }
}
