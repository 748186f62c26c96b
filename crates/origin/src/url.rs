//! URLs of origins: what is understood, what is refused by name, and how they are shown without their secrets.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::OriginError;
use crate::postgres::PostgresUrl;
use crate::secret::scrubbed;

/// Where an origin is. Its Display and Debug show no secret.
///
/// Understood are `postgres://` and `postgresql://` (as libpq reads them: several hosts, unix sockets, parameters),
/// `jdbc:postgresql:`, `sqlite:` and `jdbc:sqlite:` with a path or `:memory:`, `file:` and bare paths. `mysql:`, `mariadb:`
/// and their JDBC forms are recognised, but refused when the origin is opened: they are not served yet.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginUrl {
    pub(crate) kind: UrlKind,
    shown: String,
    ignored: Vec<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum UrlKind {
    Postgres(Box<PostgresUrl>),
    Sqlite(SqliteLocation),
    File(PathBuf),
    MySql,
}

/// Where an SQLite database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqliteLocation {
    Memory,
    Path(PathBuf),
}

const SERVED: &str = "served are postgres://, jdbc:postgresql:, sqlite:, jdbc:sqlite:, and files (.csv, .tsv, .ndjson, .jsonl, .arrow, .feather)";

impl OriginUrl {
    /// Reads a URL. Errors show it without its secrets.
    pub fn parse(url: &str) -> Result<OriginUrl, OriginError> {
        let url = url.trim();
        let fail = |reason: String| OriginError::Url { url: scrubbed(url), reason };
        let mut ignored = Vec::new();
        let lower = url.to_ascii_lowercase();
        let kind = if let Some(rest) = after(url, &lower, "jdbc:postgresql:") {
            let (parsed, without_meaning) = PostgresUrl::parse_jdbc(rest).map_err(fail)?;
            ignored = without_meaning;
            UrlKind::Postgres(Box::new(parsed))
        } else if let Some(rest) = after(url, &lower, "postgresql://").or_else(|| after(url, &lower, "postgres://")) {
            UrlKind::Postgres(Box::new(PostgresUrl::parse(rest).map_err(fail)?))
        } else if let Some(rest) = after(url, &lower, "jdbc:sqlite:").or_else(|| after(url, &lower, "sqlite:")) {
            UrlKind::Sqlite(sqlite_location(rest).map_err(fail)?)
        } else if ["mysql:", "mariadb:", "jdbc:mysql:", "jdbc:mariadb:"].iter().any(|p| lower.starts_with(p)) {
            UrlKind::MySql
        } else if let Some(rest) = after(url, &lower, "file:") {
            UrlKind::File(file_path(rest).map_err(fail)?)
        } else if let Some(scheme) = other_scheme(&lower) {
            return Err(OriginError::Unsupported { kind: scheme, advice: SERVED.to_owned() });
        } else if url.is_empty() {
            return Err(fail("it is empty".to_owned()));
        } else {
            bare_path(url).map_err(fail)?
        };
        Ok(OriginUrl { kind, shown: scrubbed(url), ignored })
    }

    /// Parameters of a JDBC URL that have no meaning here; worth a warning.
    pub fn ignored_parameters(&self) -> &[String] {
        &self.ignored
    }

    /// The file, when the URL is one.
    pub fn as_file(&self) -> Option<&Path> {
        match &self.kind {
            UrlKind::File(path) => Some(path),
            _ => None,
        }
    }

    /// The files on this machine that it names: a database, a file of rows, certificates and their keys.
    pub fn local_files(&self) -> Vec<&Path> {
        match &self.kind {
            UrlKind::File(path) | UrlKind::Sqlite(SqliteLocation::Path(path)) => vec![path],
            UrlKind::Postgres(url) => url.tls.files().collect(),
            UrlKind::Sqlite(SqliteLocation::Memory) | UrlKind::MySql => Vec::new(),
        }
    }

    /// The URL with its relative path, if it has one, taken from `directory` instead of the current one.
    pub fn relative_to(mut self, directory: &Path) -> OriginUrl {
        match &mut self.kind {
            UrlKind::File(path) | UrlKind::Sqlite(SqliteLocation::Path(path)) => *path = directory.join(&*path),
            _ => {}
        }
        self
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginUrl({:?})", self.shown)
    }
}

fn after<'a>(url: &'a str, lower: &str, prefix: &str) -> Option<&'a str> {
    if lower.starts_with(prefix) { url.get(prefix.len()..) } else { None }
}

/// The scheme of something that looks like a URL: `oracle` of `jdbc:oracle:thin:…`, `http` of `http://…`.
fn other_scheme(lower: &str) -> Option<String> {
    if let Some(rest) = lower.strip_prefix("jdbc:") {
        return Some(rest.split(':').next().unwrap_or_default().to_owned());
    }
    let (scheme, rest) = lower.split_once(':')?;
    // One letter before a colon is a drive, not a scheme.
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (is_scheme && (rest.starts_with("//") || !scheme.contains('.'))).then(|| scheme.to_owned())
}

fn sqlite_location(rest: &str) -> Result<SqliteLocation, String> {
    let (path, _settings) = rest.split_once('?').unwrap_or((rest, ""));
    let path = match (path.strip_prefix("//"), path.strip_prefix("file:")) {
        // sqlite:///a/b is absolute; sqlite://a/b is the relative path a/b, as most tools read it.
        (Some(path), _) => percent_decoded(path)?,
        (None, Some(path)) => percent_decoded(path)?,
        (None, None) => path.to_owned(),
    };
    match path.as_str() {
        ":memory:" => Ok(SqliteLocation::Memory),
        "" => Err("it names no database file".to_owned()),
        _ => Ok(SqliteLocation::Path(PathBuf::from(path))),
    }
}

fn file_path(rest: &str) -> Result<PathBuf, String> {
    let path = match rest.strip_prefix("//") {
        Some(authority) => match authority.find('/') {
            Some(0) => authority,
            Some(at) if authority.get(..at) == Some("localhost") => authority.get(at..).unwrap_or_default(),
            _ => return Err("a file URL has no host; write file:///path or file:path".to_owned()),
        },
        None => rest,
    };
    if path.is_empty() {
        return Err("it names no file".to_owned());
    }
    Ok(PathBuf::from(percent_decoded(path)?))
}

fn bare_path(path: &str) -> Result<UrlKind, String> {
    let path = PathBuf::from(path);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if matches!(extension.as_str(), "db" | "sqlite" | "sqlite3") {
        return Ok(UrlKind::Sqlite(SqliteLocation::Path(path)));
    }
    if crate::source::FileFormat::of_path(&path).is_some() {
        return Ok(UrlKind::File(path));
    }
    Err(format!("it is neither a URL nor a file of a known kind; {SERVED}"))
}

/// Decodes `%xx`; anything else stays.
pub(crate) fn percent_decoded(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err("a % must be followed by two hexadecimal digits".to_owned());
        };
        out.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(out).map_err(|_| "its percent-encoding is not UTF-8".to_owned())
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
