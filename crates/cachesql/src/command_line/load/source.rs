//! Where the bytes that are loaded come from: a file, standard input, or an http:// URL.

use std::io::Read as _;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;

use crate::command_line::client::{Client, Target};
use crate::command_line::failure::Failure;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// What is read, and how much it will be where that is known.
pub(super) struct Source {
    bytes: SourceBytes,
    pub(super) total_bytes: Option<u64>,
    name: String,
}

enum SourceBytes {
    File(std::fs::File),
    Input,
    Url(hyper::body::Incoming),
}

impl Source {
    /// Opens a path, `-` or an http:// URL.
    pub(super) async fn open(source: &str) -> Result<Source, Failure> {
        let name = source.to_owned();
        if source == "-" {
            return Ok(Source { bytes: SourceBytes::Input, total_bytes: None, name: "standard input".into() });
        }
        if source.contains("://") {
            let (target, path) = Target::of_url(source)?;
            let response = Client::new(target).send(Method::GET, &path, &[], Bytes::new()).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(Failure::Failed(format!("{source}: it answers {status}")));
            }
            let length = response.headers().get(hyper::header::CONTENT_LENGTH);
            let total_bytes = length.and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
            return Ok(Source { bytes: SourceBytes::Url(response.into_body()), total_bytes, name });
        }
        let failed = |e: std::io::Error| Failure::Failed(format!("{source}: {e}"));
        let file = std::fs::File::open(source).map_err(failed)?;
        let total_bytes = Some(file.metadata().map_err(failed)?.len()).filter(|length| *length > 0);
        Ok(Source { bytes: SourceBytes::File(file), total_bytes, name })
    }

    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut piece = vec![0; PIECE_BYTES];
        let read = match &mut self.bytes {
            SourceBytes::File(file) => file.read(&mut piece),
            SourceBytes::Input => std::io::stdin().lock().read(&mut piece),
            SourceBytes::Url(body) => loop {
                match body.frame().await {
                    None => return Ok(None),
                    Some(Err(e)) => return Err(Failure::Failed(format!("{}: it broke off: {e}", self.name))),
                    Some(Ok(frame)) => {
                        if let Ok(bytes) = frame.into_data() {
                            return Ok(Some(bytes));
                        }
                    }
                }
            },
        };
        let length = read.map_err(|e| Failure::Failed(format!("{}: {e}", self.name)))?;
        piece.truncate(length);
        Ok((length > 0).then(|| piece.into()))
    }
}
