//! Bodies: what a request brings, read within limits; what an answer sends, whole or as rows that are made when the
//! connection has room for them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use arrow_array::RecordBatch;
use bytes::Bytes;
use cachesql_node::{DirectRows, RowStream, Rows, SqlError};
use cachesql_types::limits;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::Stream;
use hyper::body::{Body, Frame, SizeHint};

use super::activity::Running;
use super::encode::Encoder;
use super::failure::Failure;
use super::statements::CarriedRows;

/// The body of an answer.
pub(crate) enum AnswerBody {
    /// Nothing.
    Empty,
    /// All of it, ready; sent with a length.
    Whole(Bytes),
    /// Rows that are encoded while the reader takes them; sent in chunks.
    Rows(Box<RowsBody>),
}

/// Why an answer stops in its middle. The connection is cut, so that the reader cannot take it for a whole one.
#[derive(Debug, thiserror::Error)]
#[error("the answer failed in its middle: {0}")]
pub(crate) struct BrokenAnswer(String);

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenAnswer;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenAnswer>>> {
        let this = self.get_mut();
        match this {
            AnswerBody::Empty => Poll::Ready(None),
            AnswerBody::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = AnswerBody::Empty;
                Poll::Ready(if bytes.is_empty() { None } else { Some(Ok(Frame::data(bytes))) })
            }
            AnswerBody::Rows(rows) => {
                let chunk = ready!(rows.poll_chunk(cx));
                if !matches!(chunk, Some(Ok(_))) {
                    *this = AnswerBody::Empty;
                }
                Poll::Ready(chunk.map(|c| c.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Empty => true,
            AnswerBody::Whole(bytes) => bytes.is_empty(),
            AnswerBody::Rows(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Empty => SizeHint::with_exact(0),
            AnswerBody::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            AnswerBody::Rows(_) => SizeHint::default(),
        }
    }
}

impl AnswerBody {
    /// The body compressed with gzip; what cannot be stays as it is, and `false` says so. Whether it is worth it, the caller asks.
    pub(crate) fn gzip(self) -> (AnswerBody, bool) {
        match self {
            AnswerBody::Whole(bytes) => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::fast());
                match encoder.write_all(&bytes).and_then(|()| encoder.finish()) {
                    Ok(packed) => (AnswerBody::Whole(Bytes::from(packed)), true),
                    Err(_) => (AnswerBody::Whole(bytes), false),
                }
            }
            AnswerBody::Rows(mut rows) => {
                rows.gzip = Some(GzEncoder::new(Vec::new(), Compression::fast()));
                (AnswerBody::Rows(rows), true)
            }
            AnswerBody::Empty => (AnswerBody::Empty, false),
        }
    }

    /// Whether compressing it can be worth it.
    pub(crate) fn is_worth_packing(&self) -> bool {
        match self {
            AnswerBody::Empty => false,
            AnswerBody::Whole(bytes) => bytes.len() >= limits::HTTP_COMPRESS_BYTES,
            AnswerBody::Rows(_) => true,
        }
    }

    /// Keeps the connection marked as at work until the last row is sent.
    pub(crate) fn hold(&mut self, run: impl FnOnce() -> Running) {
        if let AnswerBody::Rows(rows) = self {
            rows.running = Some(run());
        }
    }
}

/// One answer's rows, with the text before and after them.
pub(crate) struct Part {
    /// Sent before the rows.
    pub(crate) head: Cow<'static, [u8]>,
    /// The rows.
    pub(crate) rows: PartRows,
    /// What turns them into bytes.
    pub(crate) encoder: Encoder,
    /// Sent after the rows.
    pub(crate) tail: Cow<'static, [u8]>,
    /// Sent before the rows instead of `head` when there turn out to be none.
    pub(crate) head_if_empty: Option<Cow<'static, [u8]>>,
}

/// Where the rows of an answer come from.
pub(crate) enum PartRows {
    /// They are there.
    Direct(DirectRows),
    /// They come in batches.
    Stream(RowStream),
    /// They come in batches from where statements run.
    Carried(CarriedRows),
}

impl From<DirectRows> for PartRows {
    fn from(rows: DirectRows) -> PartRows {
        PartRows::Direct(rows)
    }
}

impl From<Rows> for PartRows {
    fn from(rows: Rows) -> PartRows {
        match rows {
            Rows::Direct(rows) => PartRows::Direct(rows),
            Rows::Stream(rows) => PartRows::Stream(rows),
        }
    }
}

impl PartRows {
    /// The next batch; direct rows have none.
    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, SqlError>>> {
        match self {
            PartRows::Direct(_) => Poll::Ready(None),
            PartRows::Stream(rows) => Pin::new(rows).poll_next(cx),
            PartRows::Carried(rows) => rows.poll_next(cx),
        }
    }
}

impl Part {
    /// Rows with nothing around them.
    pub(crate) fn new(rows: impl Into<PartRows>, encoder: Encoder) -> Part {
        Part { head: Cow::default(), rows: rows.into(), encoder, tail: Cow::default(), head_if_empty: None }
    }

    /// Appends to `out` until it holds `until` bytes or the part is encoded, with what stands around its rows; whether it is.
    /// Pending keeps what was appended.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        at: &mut Position,
        out: &mut Vec<u8>,
        until: usize,
    ) -> Poll<Result<bool, Failure>> {
        if matches!(at, Position::Start) {
            let (first, any) = ready!(poll_first(cx, &mut self.rows))?;
            *at = first;
            match self.head_if_empty.take().filter(|_| !any) {
                Some(head) => out.extend_from_slice(&head),
                None => out.extend_from_slice(&self.head),
            }
            self.encoder.begin(out);
        }
        let done = match &mut self.rows {
            PartRows::Direct(rows) => fill_direct(at, rows, &mut self.encoder, out, until),
            rows => ready!(poll_stream(cx, at, rows, &mut self.encoder, out, until)),
        };
        if !done? {
            return Poll::Ready(Ok(false));
        }
        self.encoder.end(out)?;
        out.extend_from_slice(&self.tail);
        Poll::Ready(Ok(true))
    }
}

/// Encodes rows that are there: few of them on the spot, the rest of many while it is sent.
pub(crate) fn encode_ready(mut part: Part) -> Result<AnswerBody, Failure> {
    let rows = if let PartRows::Direct(rows) = &part.rows { rows.len() } else { 0 };
    let mut out = Vec::with_capacity(part.encoder.capacity(rows));
    let mut at = Position::Start;
    // Only what comes in batches would have to be waited for.
    let mut cx = Context::from_waker(Waker::noop());
    if let Poll::Ready(done) = part.poll_fill(&mut cx, &mut at, &mut out, limits::HTTP_WHOLE_BYTES)
        && done?
    {
        return Ok(AnswerBody::Whole(Bytes::from(out)));
    }
    let parts = VecDeque::from([part]);
    Ok(AnswerBody::Rows(Box::new(RowsBody { parts, at, first: out, finished: false, gzip: None, running: None })))
}

/// Encodes parts one after the other: up to a limit at once, so that small answers have a length and early errors a
/// status, and the rest while it is sent.
pub(crate) async fn encode(parts: Vec<Part>, capacity: usize) -> Result<AnswerBody, Failure> {
    let mut body = RowsBody {
        parts: parts.into(),
        at: Position::Start,
        first: Vec::new(),
        finished: false,
        gzip: None,
        running: None,
    };
    let mut out = Vec::with_capacity(capacity);
    poll_fn(|cx| body.poll_fill(cx, &mut out, limits::HTTP_WHOLE_BYTES)).await?;
    if body.finished {
        return Ok(AnswerBody::Whole(Bytes::from(out)));
    }
    body.first = out;
    Ok(AnswerBody::Rows(Box::new(body)))
}

/// Rows on their way out.
pub(crate) struct RowsBody {
    parts: VecDeque<Part>,
    at: Position,
    /// What was encoded before the answer began.
    first: Vec<u8>,
    finished: bool,
    gzip: Option<GzEncoder<Vec<u8>>>,
    running: Option<Running>,
}

/// Where in the first part the body is.
enum Position {
    Start,
    /// The next direct row; unused for streams.
    Row(usize),
    /// A batch of the stream, and the next row of it.
    Batch(RecordBatch, usize),
}

impl RowsBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenAnswer>>> {
        loop {
            let mut out = std::mem::take(&mut self.first);
            if out.is_empty() {
                if self.finished {
                    return Poll::Ready(self.finish_gzip().map(Ok));
                }
                out.reserve(limits::HTTP_CHUNK_BYTES + limits::HTTP_CHUNK_BYTES / 4);
                let filled = self.poll_fill(cx, &mut out, limits::HTTP_CHUNK_BYTES);
                match filled {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(failure)) => {
                        tracing::warn!(code = %failure.code, message = %failure.message, "an answer broke off");
                        return Poll::Ready(Some(Err(BrokenAnswer(failure.message))));
                    }
                    Poll::Pending if out.is_empty() => return Poll::Pending,
                    // What is there is sent; the stream wakes the task when there is more.
                    Poll::Pending => {}
                }
            }
            let packed = self.pack(out);
            if !packed.is_empty() {
                return Poll::Ready(Some(Ok(packed)));
            }
        }
    }

    fn pack(&mut self, out: Vec<u8>) -> Bytes {
        let Some(gzip) = &mut self.gzip else { return Bytes::from(out) };
        // Writing to a Vec does not fail.
        let _ = gzip.write_all(&out);
        Bytes::from(std::mem::take(gzip.get_mut()))
    }

    fn finish_gzip(&mut self) -> Option<Bytes> {
        self.gzip.take().and_then(|gzip| gzip.finish().ok()).map(Bytes::from)
    }

    /// Appends to `out` until it holds `until` bytes or everything is encoded. Pending keeps what was appended.
    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>, until: usize) -> Poll<Result<(), Failure>> {
        while out.len() < until {
            let Some(part) = self.parts.front_mut() else {
                self.finished = true;
                return Poll::Ready(Ok(()));
            };
            if ready!(part.poll_fill(cx, &mut self.at, out, until))? {
                self.parts.pop_front();
                self.at = Position::Start;
            }
        }
        if self.parts.is_empty() {
            self.finished = true;
        }
        Poll::Ready(Ok(()))
    }
}

/// Finds the first row; false when there is none.
fn poll_first(cx: &mut Context<'_>, rows: &mut PartRows) -> Poll<Result<(Position, bool), Failure>> {
    if let PartRows::Direct(rows) = rows {
        return Poll::Ready(Ok((Position::Row(0), !rows.is_empty())));
    }
    loop {
        match ready!(rows.poll_batch(cx)) {
            Some(Ok(batch)) if batch.num_rows() == 0 => {}
            Some(Ok(batch)) => return Poll::Ready(Ok((Position::Batch(batch, 0), true))),
            Some(Err(error)) => return Poll::Ready(Err(super::status::of_sql(&error))),
            None => return Poll::Ready(Ok((Position::Row(0), false))),
        }
    }
}

/// Encodes direct rows; whether all are.
fn fill_direct(
    at: &mut Position,
    rows: &DirectRows,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    until: usize,
) -> Result<bool, Failure> {
    let from = if let Position::Row(row) = at { *row } else { 0 };
    let next = encoder.direct(out, rows, from, until)?;
    *at = Position::Row(next);
    Ok(next >= rows.len())
}

/// Encodes rows of a stream; whether all are.
fn poll_stream(
    cx: &mut Context<'_>,
    at: &mut Position,
    rows: &mut PartRows,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    until: usize,
) -> Poll<Result<bool, Failure>> {
    loop {
        if let Position::Batch(batch, row) = at {
            *row = encoder.batch(out, batch, *row, until)?;
            if *row < batch.num_rows() {
                return Poll::Ready(Ok(false));
            }
            *at = Position::Row(0);
        }
        if out.len() >= until {
            return Poll::Ready(Ok(false));
        }
        match ready!(rows.poll_batch(cx)) {
            Some(Ok(batch)) => *at = Position::Batch(batch, 0),
            Some(Err(error)) => return Poll::Ready(Err(super::status::of_sql(&error))),
            None => return Poll::Ready(Ok(true)),
        }
    }
}
