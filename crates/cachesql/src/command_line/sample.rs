//! The bundled sample data, for a first look without any database: unpacked into a temporary folder, and served from there.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::failure::Failure;

const FILES: [(&str, &[u8]); 3] = [
    ("cachesql.toml", include_bytes!("../../../../sample/cachesql.toml")),
    ("sample.db", include_bytes!("../../../../sample/sample.db")),
    ("cities.csv", include_bytes!("../../../../sample/cities.csv")),
];

/// The sample on disk, for as long as this lives.
pub(super) struct Sample {
    folder: TempDir,
}

impl Sample {
    pub(super) fn unpack() -> Result<Sample, Failure> {
        let failed = |e: std::io::Error| Failure::Failed(format!("the sample data cannot be unpacked: {e}"));
        let folder = tempfile::Builder::new().prefix("cachesql-sample-").tempdir().map_err(failed)?;
        for (name, bytes) in FILES {
            std::fs::write(folder.path().join(name), bytes).map_err(failed)?;
        }
        Ok(Sample { folder })
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its configuration.
    pub(super) fn configuration(&self) -> PathBuf {
        self.folder.path().join("cachesql.toml")
    }
}
