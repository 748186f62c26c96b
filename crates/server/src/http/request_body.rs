//! Reading a request's body, within limits of size, time and memory of all requests together.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use cachesql_types::limits;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use hyper::{HeaderMap, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::activity::Activity;
use super::failure::Failure;
use super::long_read::off_thread;

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
        let permits = (limits::HTTP_BODIES_BYTES.max(body_bytes) / limits::HTTP_BODY_PERMIT_BYTES).saturating_add(1);
        BodyBudget { permits: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))), body_bytes }
    }

    /// Reads a body to its end.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        activity: &Activity,
    ) -> Result<RequestBody, Failure> {
        let announced = announced(headers);
        if announced.is_some_and(|length| length > self.body_bytes) {
            return Err(Failure::body_too_large(self.body_bytes));
        }
        match tokio::time::timeout(
            limits::HTTP_BODY_TIMEOUT,
            self.collect(announced.unwrap_or(0), Arriving::new(body, activity)),
        )
        .await
        {
            Ok(read) => read,
            Err(_) => Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "08006", "the body did not arrive in time")),
        }
    }

    async fn collect(&self, announced: usize, mut body: Arriving<'_>) -> Result<RequestBody, Failure> {
        let mut bytes = Vec::with_capacity(announced.min(limits::HTTP_BODY_PERMIT_BYTES));
        let mut permits: Option<OwnedSemaphorePermit> = None;
        while let Some(data) = body.next().await {
            let data = data.map_err(|_| Failure::bad_request("the body broke off or is not framed as HTTP says"))?;
            let length = bytes.len().saturating_add(data.len());
            if length > self.body_bytes {
                return Err(Failure::body_too_large(self.body_bytes));
            }
            // The first stretch is free: small bodies are bounded by the number of connections.
            self.grow(&mut permits, length / limits::HTTP_BODY_PERMIT_BYTES)?;
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

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok())
}

/// Refuses bodies that are packed.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            Err(Failure::media_type("bodies with a Content-Encoding are not read"))
        }
        _ => Ok(()),
    }
}

/// Reads a body that nobody wants, so that its connection can serve on; false when it is too large or too slow for that.
pub(crate) async fn pass_over(headers: &HeaderMap, body: Incoming, activity: &Activity) -> bool {
    // Who waits to be told to send a body is not told.
    if headers.contains_key(EXPECT) || announced(headers).is_some_and(|length| length > limits::HTTP_UNWANTED_BYTES) {
        return false;
    }
    let mut body = Arriving::new(body, activity);
    let read = async {
        let mut length = 0_usize;
        while let Some(data) = body.next().await {
            length = length.saturating_add(data.ok()?.len());
            if length > limits::HTTP_UNWANTED_BYTES {
                return None;
            }
        }
        Some(())
    };
    matches!(tokio::time::timeout(limits::HTTP_UNWANTED_TIMEOUT, read).await, Ok(Some(())))
}

/// A body on its way in, whose end is noted.
struct Arriving<'a> {
    body: Incoming,
    /// Whether a length was announced; chunks otherwise.
    has_length: bool,
    /// The address behind the last byte.
    end: usize,
    activity: &'a Activity,
}

impl<'a> Arriving<'a> {
    fn new(body: Incoming, activity: &'a Activity) -> Arriving<'a> {
        let has_length = body.size_hint().exact().is_some();
        Arriving { body, has_length, end: 0, activity }
    }

    /// The next bytes; they lie where the connection read them.
    async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    // Trailers are passed over.
                    let Ok(data) = frame.into_data() else { continue };
                    self.end = data.as_ptr().addr().wrapping_add(data.len());
                    return Some(Ok(data));
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.activity.end_body(self.has_length.then_some(self.end));
                    return None;
                }
            }
        }
    }
}
