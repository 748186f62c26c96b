//! What became of requests that carry an id, so that a retry is applied once and gets the same answer.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use cachesql_types::{LogIndex, limits};
use twox_hash::XxHash3_64;

use crate::entry::Answered;
use crate::error::NodeError;

/// A caller's name for a request, and a fingerprint of what was asked, so that a name used twice is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    id: Arc<str>,
    fingerprint: u64,
}

impl RequestKey {
    /// A key of a request whose content is written out in `content`.
    pub(crate) fn new(id: &str, content: &str) -> Result<RequestKey, NodeError> {
        RequestKey::of_parts(id, XxHash3_64::oneshot(content.as_bytes()))
    }

    /// A key as the log carries it.
    pub fn of_parts(id: &str, fingerprint: u64) -> Result<RequestKey, NodeError> {
        if id.is_empty() || id.len() > limits::REQUEST_ID_BYTES {
            return Err(NodeError::RequestId { bytes: id.len(), most: limits::REQUEST_ID_BYTES });
        }
        Ok(RequestKey { id: Arc::from(id), fingerprint })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// One remembered answer.
#[derive(Clone)]
pub(crate) struct Remembered {
    fingerprint: u64,
    pub(crate) index: LogIndex,
    /// As [`Outcome::encode`](crate::outcome::Outcome::encode) wrote them.
    pub(crate) outcomes: Bytes,
}

/// The answers of the last requests with an id; the oldest are forgotten first. What is kept follows from the log alone, so
/// that every member remembers the same.
#[derive(Clone, Default)]
pub(crate) struct RequestMemory {
    by_id: HashMap<Arc<str>, Remembered>,
    oldest_first: VecDeque<Arc<str>>,
    outcome_bytes: usize,
}

impl RequestMemory {
    /// The answer that the request got when it came before.
    pub(crate) fn find(&self, key: &RequestKey) -> Result<Option<Remembered>, NodeError> {
        match self.by_id.get(&key.id) {
            None => Ok(None),
            Some(remembered) if remembered.fingerprint == key.fingerprint => Ok(Some(remembered.clone())),
            Some(_) => Err(NodeError::RequestIdReused { id: key.id.to_string() }),
        }
    }

    /// Remembers an answer, and forgets old ones where there are too many.
    pub(crate) fn remember(&mut self, Answered { key, outcomes }: Answered, index: LogIndex) {
        self.outcome_bytes = self.outcome_bytes.saturating_add(outcomes.len());
        let remembered = Remembered { fingerprint: key.fingerprint, index, outcomes };
        self.oldest_first.push_back(key.id.clone());
        self.by_id.insert(key.id, remembered);
        // The newest stays whatever its size: its caller may be about to ask again.
        while self.oldest_first.len() > 1
            && (self.oldest_first.len() > limits::REQUEST_IDS || self.outcome_bytes > limits::REQUEST_ID_OUTCOME_BYTES)
        {
            let Some(oldest) = self.oldest_first.pop_front() else { break };
            if let Some(forgotten) = self.by_id.remove(&oldest) {
                self.outcome_bytes = self.outcome_bytes.saturating_sub(forgotten.outcomes.len());
            }
        }
    }

    /// Everything remembered, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Answered, LogIndex)> + '_ {
        self.oldest_first.iter().filter_map(|id| {
            let Remembered { fingerprint, index, outcomes } = self.by_id.get(id)?;
            let key = RequestKey { id: id.clone(), fingerprint: *fingerprint };
            Some((Answered { key, outcomes: outcomes.clone() }, *index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, content: &str) -> RequestKey {
        RequestKey::new(id, content).expect("sound id")
    }

    fn answered(id: &str, content: &str) -> Answered {
        Answered { key: key(id, content), outcomes: Bytes::new() }
    }

    #[test]
    fn an_id_means_one_request() {
        let mut memory = RequestMemory::default();
        memory.remember(answered("a", "insert 1"), LogIndex(3));
        assert_eq!(memory.find(&key("a", "insert 1")).expect("same").map(|r| r.index), Some(LogIndex(3)));
        assert!(memory.find(&key("b", "insert 1")).expect("new").is_none());
        assert!(matches!(memory.find(&key("a", "insert 2")), Err(NodeError::RequestIdReused { .. })));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut memory = RequestMemory::default();
        for i in 0..=limits::REQUEST_IDS {
            memory.remember(answered(&i.to_string(), ""), LogIndex(1));
        }
        assert!(memory.find(&key("0", "")).expect("forgotten").is_none());
        assert!(memory.find(&key("1", "")).expect("kept").is_some());
        assert_eq!(memory.by_id.len(), limits::REQUEST_IDS);
        let kept: Vec<Answered> = memory.iter().map(|(answered, _)| answered).collect();
        assert_eq!((kept.len(), kept.first()), (limits::REQUEST_IDS, Some(&answered("1", ""))));
    }

    #[test]
    fn large_answers_are_forgotten_sooner() {
        let mut memory = RequestMemory::default();
        let outcomes = Bytes::from(vec![0; limits::REQUEST_ID_OUTCOME_BYTES / 2 + 1]);
        for id in ["a", "b"] {
            memory.remember(Answered { key: key(id, ""), outcomes: outcomes.clone() }, LogIndex(1));
        }
        assert!(memory.find(&key("a", "")).expect("forgotten").is_none());
        assert!(memory.find(&key("b", "")).expect("kept").is_some());
    }

    #[test]
    fn ids_have_a_length() {
        assert!(matches!(RequestKey::new("", ""), Err(NodeError::RequestId { bytes: 0, .. })));
        assert!(RequestKey::new(&"x".repeat(limits::REQUEST_ID_BYTES), "").is_ok());
        assert!(RequestKey::new(&"x".repeat(limits::REQUEST_ID_BYTES + 1), "").is_err());
    }
}
