//! What members of a group agree on, as one of them has it: the rows, and what became of requests that have an id.
//!
//! It changes by entries of the log alone, in their order. The member that proposed an entry has applied it in private
//! before, and takes that outcome; the others apply the entry's operations.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use cachesql_group::machine::{Capture, Fence, Machine};
#[cfg(feature = "simulation")]
use cachesql_group::simulation::PlantedBug;
use cachesql_table::{GroupSnapshot, ImageReader};
use cachesql_types::{LogIndex, limits};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::core::Core;
use crate::entry::{Answered, Entry, Head, Place, read_answered, read_array, read_place, split, write_answered};
use crate::error::NodeError;
use crate::remembered::{Remembered, RequestKey, RequestMemory};

/// The replicated state of one member.
pub struct State {
    core: Arc<Core>,
    inner: Mutex<Inner>,
    /// Told when the log has grown long beside what it makes.
    grown: Notify,
}

#[derive(Default)]
struct Inner {
    /// The place of the last entry that was applied.
    last: Place,
    remembered: RequestMemory,
    /// What this member has proposed, in order, as it will be once it is agreed on.
    rehearsed: VecDeque<Rehearsed>,
    /// Bytes of entries since the state was last written out.
    log_bytes: u64,
}

/// An entry's outcome, ahead of its time.
pub(crate) struct Rehearsed {
    pub(crate) place: Place,
    pub(crate) snapshot: GroupSnapshot,
    pub(crate) answered: Option<Answered>,
}

impl State {
    pub(crate) fn new(core: Arc<Core>) -> State {
        State { core, inner: Mutex::default(), grown: Notify::new() }
    }

    /// The position of the last write that was applied.
    pub fn index(&self) -> LogIndex {
        self.core.read_now(GroupSnapshot::index)
    }

    /// The newest rows, and the place of the write that made them.
    pub(crate) fn newest(&self) -> (GroupSnapshot, Place) {
        let inner = self.inner.lock();
        (self.core.snapshot(), inner.last)
    }

    /// Notes the outcome of an entry that is about to be proposed.
    pub(crate) fn expect(&self, rehearsed: Rehearsed) {
        self.inner.lock().rehearsed.push_back(rehearsed);
    }

    /// Forgets what was noted: none of it is on its way any more.
    pub(crate) fn expect_nothing(&self) {
        self.inner.lock().rehearsed.clear();
    }

    /// Waits until the log is longer than it is worth: reading it again would take longer than reading what it makes.
    pub(crate) async fn grown(&self) {
        self.grown.notified().await;
    }

    fn note_growth(&self, bytes: usize) {
        let worth = limits::SNAPSHOT_LOG_BYTES.max(self.core.read_now(|snapshot| snapshot.memory().total()));
        let mut inner = self.inner.lock();
        inner.log_bytes = inner.log_bytes.saturating_add(bytes as u64);
        if inner.log_bytes > worth {
            inner.log_bytes = 0;
            self.grown.notify_one();
        }
    }

    /// What became of an earlier request with this key.
    pub(crate) fn remembered(&self, key: &RequestKey) -> Result<Option<Remembered>, NodeError> {
        self.inner.lock().remembered.find(key)
    }

    /// Applies writes that were proposed together and need not be read. False when they do nothing: see [`Entry`].
    pub fn apply_entries(&self, index: LogIndex, entries: impl IntoIterator<Item = Entry>) -> Result<bool, Fence> {
        let writes = entries.into_iter().map(|entry| Ok((entry.place, entry.after, move || Ok(entry))));
        self.apply_all(index, writes)
    }

    /// Applies writes that were proposed together: all of them, or none where the first one does nothing. Readers see them together,
    /// since they have one position.
    fn apply_all<E: FnOnce() -> Result<Entry, Fence>>(
        &self,
        index: LogIndex,
        writes: impl Iterator<Item = Result<(Place, Place, E), Fence>>,
    ) -> Result<bool, Fence> {
        let mut inner = self.inner.lock();
        let mut newest: Option<GroupSnapshot> = None;
        for write in writes {
            let (place, after, entry) = write?;
            #[cfg(feature = "simulation")]
            let after = if PlantedBug::AfterNotChecked.is_planted() { inner.last } else { after };
            if after != inner.last {
                return match newest {
                    None => Ok(false),
                    Some(_) => Err(Fence(format!("log index {index}: writes of one proposal are not planned in turn"))),
                };
            }
            let (snapshot, answered) = match inner.take_rehearsed(place) {
                // Made of the very state that this member has now: there is one that the entry `after` left.
                Some(Rehearsed { snapshot, answered, .. }) => (snapshot.at(index), answered),
                None => {
                    let entry = entry()?;
                    let applied = match &newest {
                        None => self.core.read_now(|newest| newest.apply(index, &entry.operations)),
                        Some(newest) => newest.apply_more(&entry.operations),
                    };
                    // The proposer applied it to the same state. What is refused here makes this member another than that one.
                    let (snapshot, _) = applied.map_err(|error| Fence(format!("log index {index}: {error}")))?;
                    (snapshot, entry.answered)
                }
            };
            inner.last = place;
            if let Some(answered) = answered {
                inner.remembered.remember(answered, index);
            }
            newest = Some(snapshot);
        }
        if let Some(newest) = newest {
            self.core.publish(newest);
        }
        Ok(true)
    }
}

impl Inner {
    /// What was noted of an entry. What was noted before it is not coming any more.
    fn take_rehearsed(&mut self, place: Place) -> Option<Rehearsed> {
        let at = self.rehearsed.iter().position(|rehearsed| rehearsed.place == place)?;
        self.rehearsed.drain(..at);
        self.rehearsed.pop_front()
    }
}

/// What applying an entry answers to its proposer.
const APPLIED: &[u8] = &[1];
/// The same for an entry that did nothing.
const SUPERSEDED: &[u8] = &[0];

/// Whether an entry was applied, of what [`State`] answers as a machine.
pub(crate) fn was_applied(outcome: &Bytes) -> bool {
    **outcome == *APPLIED
}

impl Machine for State {
    fn apply(&self, index: u64, proposal: &Bytes) -> Result<Bytes, Fence> {
        let unread = |error: &dyn std::fmt::Display| Fence(format!("log index {index}: {error}"));
        let writes = split(proposal).map_err(|error| unread(&error))?;
        let read = |bytes| {
            let (head, _) = Head::split(bytes).map_err(|error| unread(&error))?;
            Ok((head.place, head.after, move || Entry::decode(bytes).map_err(|error| unread(&error))))
        };
        let applied = self.apply_all(LogIndex(index), writes.into_iter().map(read))?;
        self.note_growth(proposal.len());
        Ok(Bytes::from_static(if applied { APPLIED } else { SUPERSEDED }))
    }

    fn capture(&self) -> Box<dyn Capture> {
        let mut inner = self.inner.lock();
        inner.log_bytes = 0;
        let (snapshot, remembered) = (self.core.snapshot(), inner.remembered.clone());
        Box::new(Captured { last: inner.last, snapshot, remembered })
    }

    fn restore(&self, from: &mut dyn Read) -> Result<(), Fence> {
        let restored =
            Captured::read(&mut BufReader::new(from)).map_err(|error| Fence(format!("a snapshot: {error}")))?;
        #[cfg(feature = "simulation")]
        let restored = if PlantedBug::RequestIdsForgotten.is_planted() {
            Captured { remembered: RequestMemory::default(), ..restored }
        } else {
            restored
        };
        let mut inner = self.inner.lock();
        *inner = Inner { last: restored.last, remembered: restored.remembered, ..Inner::default() };
        self.core.publish(restored.snapshot);
        Ok(())
    }
}

/// A state that does not change any more.
struct Captured {
    last: Place,
    snapshot: GroupSnapshot,
    remembered: RequestMemory,
}

// The wire form of a state: pieces, each a tag, the length of what follows in four bytes (little-endian), and that. These numbers
// never change.

/// The version in one byte, then the run and step of the last entry.
const PIECE_STATE: u8 = 1;
/// A remembered request: the index in eight bytes, then the request as entries have it.
const PIECE_REQUEST: u8 = 2;
/// A piece of the rows.
const PIECE_ROWS: u8 = 3;
/// Nothing follows.
const PIECE_END: u8 = 4;
const STATE_VERSION: u8 = 1;

impl Capture for Captured {
    fn write(self: Box<Self>, to: &mut dyn Write) -> io::Result<()> {
        let mut state = vec![STATE_VERSION];
        state.extend_from_slice(&self.last.run.to_le_bytes());
        state.extend_from_slice(&self.last.step.to_le_bytes());
        write_piece(to, PIECE_STATE, &state)?;
        for (Answered { key, outcomes }, index) in self.remembered.iter() {
            let mut request = index.0.to_le_bytes().to_vec();
            write_answered(&mut request, &key, &outcomes);
            write_piece(to, PIECE_REQUEST, &request)?;
        }
        for rows in self.snapshot.image() {
            write_piece(to, PIECE_ROWS, &rows)?;
        }
        write_piece(to, PIECE_END, &[])
    }
}

fn write_piece(to: &mut dyn Write, tag: u8, content: &[u8]) -> io::Result<()> {
    to.write_all(&[tag])?;
    to.write_all(&u32::try_from(content.len()).map_err(io::Error::other)?.to_le_bytes())?;
    to.write_all(content)
}

impl Captured {
    fn read(from: &mut impl Read) -> io::Result<Captured> {
        let mut last = None;
        let mut remembered = RequestMemory::default();
        let mut rows = ImageReader::new();
        loop {
            let mut head = [0; 5];
            from.read_exact(&mut head)?;
            let [tag, length @ ..] = head;
            let mut content = Vec::new();
            let length = u32::from_le_bytes(length);
            // What is there is read, whatever the length says.
            if from.take(u64::from(length)).read_to_end(&mut content)? < length as usize {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let rest = &mut &*content;
            match tag {
                PIECE_STATE => {
                    let [version] = read_array(rest).map_err(io::Error::other)?;
                    if version != STATE_VERSION {
                        return Err(io::Error::other(format!("states of version {version} are not known")));
                    }
                    last = Some(read_place(rest).map_err(io::Error::other)?);
                }
                PIECE_REQUEST => {
                    let index = u64::from_le_bytes(read_array(rest).map_err(io::Error::other)?);
                    let answered = read_answered(rest).map_err(io::Error::other)?;
                    remembered.remember(answered, LogIndex(index));
                }
                PIECE_ROWS => {
                    rows.push(rest).map_err(io::Error::other)?;
                    continue;
                }
                PIECE_END => {
                    let last = last.ok_or_else(|| io::Error::other("a state without its place"))?;
                    return Ok(Captured { last, snapshot: rows.finish().map_err(io::Error::other)?, remembered });
                }
                unknown => return Err(io::Error::other(format!("pieces of kind {unknown} are not known"))),
            }
            if !rest.is_empty() {
                return Err(io::Error::other(format!("{} bytes too many in a piece of kind {tag}", rest.len())));
            }
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
