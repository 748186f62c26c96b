//! Reading a request's body, within limits of size, time and memory of all requests together.

use std::pin::pin;
use std::sync::Arc;

use cachesql_types::limits;
use futures::future::poll_fn;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use hyper::{HeaderMap, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use super::long_read::off_thread;

/// Bytes that one permit of the budget stands for.
const PERMIT_BYTES: usize = 64 << 10;

/// Memory that the bodies of all requests may take together.
#[derive(Clone)]
pub(crate) struct BodyBudget {
    permits: Arc<Semaphore>,
    body_bytes: usize,
}

/// A body that was read. Its memory counts until it is dropped.
pub(crate) struct RequestBody {
    bytes: Vec<u8>,
    _permits: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    /// The bytes as text, without a byte order mark in front.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        let text = std::str::from_utf8(&self.bytes).map_err(|error| {
            Failure::new(
                StatusCode::BAD_REQUEST,
                "22021",
                format!("the body is not UTF-8 (at byte {})", error.valid_up_to()),
            )
        })?;
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// Makes something of the text: on the spot of a short one, on a thread that may block of a long one.
    pub(crate) async fn decode<T: Send + 'static>(
        self,
        decode: impl FnOnce(&str) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.bytes.len() <= limits::HTTP_INLINE_BODY_BYTES {
            return decode(self.text()?);
        }
        off_thread(move || decode(self.text()?)).await?
    }
}

impl BodyBudget {
    /// A budget for bodies of at most `body_bytes` each.
    pub(crate) fn new(body_bytes: usize) -> BodyBudget {
        let permits = (limits::HTTP_BODIES_BYTES.max(body_bytes) / PERMIT_BYTES).saturating_add(1);
        BodyBudget { permits: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))), body_bytes }
    }

    /// Reads a body to its end.
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Incoming) -> Result<RequestBody, Failure> {
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(Failure::media_type("bodies with a Content-Encoding are not read"));
        }
        let announced = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
        if announced.is_some_and(|length| length > self.body_bytes) {
            return Err(Failure::body_too_large(self.body_bytes));
        }
        match tokio::time::timeout(limits::HTTP_BODY_TIMEOUT, self.collect(announced.unwrap_or(0), body)).await {
            Ok(read) => read,
            Err(_) => Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "08006", "the body did not arrive in time")),
        }
    }

    async fn collect(&self, announced: usize, body: Incoming) -> Result<RequestBody, Failure> {
        let mut body = pin!(body);
        let mut bytes = Vec::with_capacity(announced.min(PERMIT_BYTES));
        let mut permits: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| Failure::bad_request("the body broke off or is not framed as HTTP says"))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len().saturating_add(data.len());
            if length > self.body_bytes {
                return Err(Failure::body_too_large(self.body_bytes));
            }
            // The first stretch is free: small bodies are bounded by the number of connections.
            self.grow(&mut permits, length / PERMIT_BYTES)?;
            bytes.extend_from_slice(&data);
        }
        Ok(RequestBody { bytes, _permits: permits })
    }

    fn grow(&self, permits: &mut Option<OwnedSemaphorePermit>, wanted: usize) -> Result<(), Failure> {
        let missing = wanted.saturating_sub(permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        if missing == 0 {
            return Ok(());
        }
        let more = u32::try_from(missing).ok().and_then(|n| self.permits.clone().try_acquire_many_owned(n).ok());
        let Some(more) = more else {
            return Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "53200",
                "the node is reading as many large bodies as it has memory for",
            ));
        };
        match permits {
            Some(held) => held.merge(more),
            None => *permits = Some(more),
        }
        Ok(())
    }
}
