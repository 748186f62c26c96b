//! What only the member that leads can do, as data, and what it answers: how another member asks for it.

use std::sync::Arc;
use std::time::Duration;

use cachesql_types::{LogIndex, Token};

use crate::bytes_of::{
    ReadError, end, put_bytes, put_flag, put_number, put_optional, put_tagged, put_text, take_byte, take_bytes,
    take_flag, take_number, take_optional, take_text,
};
use crate::error::NodeError;
use crate::mutation::Mutation;
use crate::outcome::Outcome;
use crate::remembered::RequestKey;
use crate::request::LoadReport;
use crate::writer::Written;

/// What a caller asks for that only the leader can do.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// A change of rows.
    Write(Mutation, Option<RequestKey>),
    /// Removing the rows of a table that are too old or too many now.
    Clean(String),
    /// Loading a table from its source.
    Load(String),
    /// Loading every table that has a source.
    Refresh,
}

/// What was done.
#[derive(Clone)]
pub(crate) enum Done {
    Written(Written),
    /// Rows removed, and the log index that this is seen at.
    Cleaned(u64, LogIndex),
    Loaded(LoadReport),
    /// Tables loaded, and the log index that this is seen at.
    Refreshed(u64, LogIndex),
}

impl Done {
    /// The log index that it is seen at.
    pub(crate) fn index(&self) -> LogIndex {
        match self {
            Done::Written(written) => written.index,
            Done::Loaded(report) => report.token.index,
            Done::Cleaned(_, index) | Done::Refreshed(_, index) => *index,
        }
    }

    /// It was another thing that was asked for.
    pub(crate) fn unexpected<T>(&self) -> Result<T, NodeError> {
        Err(NodeError::Internal("an answer that does not fit what the leader was asked for".into()))
    }
}

// The wire form. These numbers never change.

const WRITE: u8 = 1;
const CLEAN: u8 = 2;
const LOAD: u8 = 3;
const REFRESH: u8 = 4;

impl Command {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Command::Write(mutation, key) => {
                out.push(WRITE);
                put_optional(&mut out, key.as_ref(), |out, key| {
                    put_text(out, key.id());
                    put_number(out, key.fingerprint());
                });
                mutation.write_to(&mut out);
            }
            Command::Clean(table) => put_tagged(&mut out, CLEAN, table),
            Command::Load(table) => put_tagged(&mut out, LOAD, table),
            Command::Refresh => out.push(REFRESH),
        }
        out
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Command, ReadError> {
        let rest = &mut bytes;
        let command = match take_byte(rest)? {
            WRITE => {
                let key = take_optional(rest, |rest| {
                    let id = take_text(rest)?;
                    RequestKey::of_parts(&id, take_number(rest)?).map_err(|_| ReadError::RequestId)
                })?;
                Command::Write(Mutation::read_from(rest)?, key)
            }
            CLEAN => Command::Clean(take_text(rest)?),
            LOAD => Command::Load(take_text(rest)?),
            REFRESH => Command::Refresh,
            unknown => return Err(ReadError::Tag(unknown)),
        };
        end(rest)?;
        Ok(command)
    }
}

const WRITTEN: u8 = 1;
const CLEANED: u8 = 2;
const LOADED: u8 = 3;
const REFRESHED: u8 = 4;
const UNKNOWN_TABLE: u8 = 5;
const UNKNOWN_COLUMN: u8 = 6;
const NOT_LEADER: u8 = 7;
const UNKNOWN: u8 = 8;
const SUPERSEDED: u8 = 9;
const SHUTDOWN: u8 = 10;
const NOT_LOADED: u8 = 11;
const REQUEST_ID_REUSED: u8 = 12;
const OTHER: u8 = 13;

/// What the leader answers, as bytes: what it did, or why it did not.
pub(crate) fn encode_answer(answer: &Result<Done, NodeError>) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        Ok(done) => put_done(&mut out, done),
        Err(error) => put_error(&mut out, error),
    }
    out
}

fn put_done(out: &mut Vec<u8>, done: &Done) {
    match done {
        Done::Written(Written { index, outcomes, replayed }) => {
            out.push(WRITTEN);
            put_number(out, index.0);
            put_flag(out, *replayed);
            put_bytes(out, &Outcome::encode(outcomes));
        }
        Done::Cleaned(number, index) => put_counted(out, CLEANED, *number, *index),
        Done::Refreshed(number, index) => put_counted(out, REFRESHED, *number, *index),
        Done::Loaded(LoadReport { table, rows, put, deleted, took, token }) => {
            out.push(LOADED);
            put_text(out, table);
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            [*rows, *put, *deleted, micros, token.index.0].into_iter().for_each(|number| put_number(out, number));
            put_text(out, &token.group);
        }
    }
}

fn put_counted(out: &mut Vec<u8>, tag: u8, number: u64, index: LogIndex) {
    out.push(tag);
    put_number(out, number);
    put_number(out, index.0);
}

fn put_error(out: &mut Vec<u8>, error: &NodeError) {
    let mut tagged = |tag: u8, texts: &[&str]| {
        out.push(tag);
        texts.iter().for_each(|text| put_text(out, text));
    };
    match error {
        NodeError::UnknownTable { table } => tagged(UNKNOWN_TABLE, &[table]),
        NodeError::UnknownColumn { table, column } => tagged(UNKNOWN_COLUMN, &[table, column]),
        NodeError::NotLeader { group, leader } => {
            tagged(NOT_LEADER, &[group]);
            put_optional(out, leader.as_deref(), put_text);
        }
        NodeError::Unknown => tagged(UNKNOWN, &[]),
        NodeError::Superseded => tagged(SUPERSEDED, &[]),
        NodeError::Shutdown => tagged(SHUTDOWN, &[]),
        NodeError::NotLoaded { table, failure } => {
            tagged(NOT_LOADED, &[table]);
            put_optional(out, failure.as_deref(), put_text);
        }
        NodeError::RequestIdReused { id } => tagged(REQUEST_ID_REUSED, &[id]),
        other => tagged(OTHER, &[other.sqlstate(), &other.to_string()]),
    }
}

/// Reads what [`encode_answer`] wrote.
pub(crate) fn decode_answer(mut bytes: &[u8]) -> Result<Result<Done, NodeError>, ReadError> {
    let rest = &mut bytes;
    let tag = take_byte(rest)?;
    let answer = match tag {
        WRITTEN => {
            let (index, replayed) = (LogIndex(take_number(rest)?), take_flag(rest)?);
            let outcomes = Arc::new(Outcome::decode(take_bytes(rest)?)?);
            Ok(Done::Written(Written { index, outcomes, replayed }))
        }
        CLEANED => Ok(Done::Cleaned(take_number(rest)?, LogIndex(take_number(rest)?))),
        REFRESHED => Ok(Done::Refreshed(take_number(rest)?, LogIndex(take_number(rest)?))),
        LOADED => Ok(Done::Loaded(take_report(rest)?)),
        error => Err(take_error(error, rest)?),
    };
    end(rest)?;
    Ok(answer)
}

fn take_report(rest: &mut &[u8]) -> Result<LoadReport, ReadError> {
    let table = take_text(rest)?;
    let (rows, put, deleted) = (take_number(rest)?, take_number(rest)?, take_number(rest)?);
    let took = Duration::from_micros(take_number(rest)?);
    let index = LogIndex(take_number(rest)?);
    Ok(LoadReport { table, rows, put, deleted, took, token: Token { group: take_text(rest)?, index } })
}

fn take_error(tag: u8, rest: &mut &[u8]) -> Result<NodeError, ReadError> {
    Ok(match tag {
        UNKNOWN_TABLE => NodeError::UnknownTable { table: take_text(rest)? },
        UNKNOWN_COLUMN => NodeError::UnknownColumn { table: take_text(rest)?, column: take_text(rest)? },
        NOT_LEADER => NodeError::NotLeader { group: take_text(rest)?, leader: take_optional(rest, take_text)? },
        UNKNOWN => NodeError::Unknown,
        SUPERSEDED => NodeError::Superseded,
        SHUTDOWN => NodeError::Shutdown,
        NOT_LOADED => NodeError::NotLoaded { table: take_text(rest)?, failure: take_optional(rest, take_text)? },
        REQUEST_ID_REUSED => NodeError::RequestIdReused { id: take_text(rest)? },
        OTHER => NodeError::of_leader(&take_text(rest)?, take_text(rest)?),
        unknown => return Err(ReadError::Tag(unknown)),
    })
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
