//! Commands and their answers as bytes.

use proptest::prelude::*;

use super::*;
use crate::request::Statement;

fn key(id: &str) -> RequestKey {
    RequestKey::of_parts(id, 77).expect("sound id")
}

#[test]
fn commands_are_read_as_they_were() {
    let write = || Mutation::Statements(Arc::new(vec![Statement::new("DELETE FROM t")]));
    let commands = [
        Command::Write(write(), None),
        Command::Write(write(), Some(key("an id"))),
        Command::Clean("t".into()),
        Command::Load("汉字".into()),
        Command::Refresh,
    ];
    for command in commands {
        let bytes = command.encode();
        let read = Command::decode(&bytes).expect("what was written");
        assert_eq!(format!("{read:?}"), format!("{command:?}"));
        for length in 0..bytes.len() {
            assert!(Command::decode(&bytes[..length]).is_err(), "{command:?}, {length} bytes");
        }
        assert!(Command::decode(&[&*bytes, &[0]].concat()).is_err(), "{command:?}: a byte too many");
    }
}

#[test]
fn what_was_done_is_read_as_it_was() {
    let outcomes = Arc::new(vec![Outcome::written(3, None), Outcome::written(0, None)]);
    let token = Token { group: "g".into(), index: LogIndex(9) };
    let took = Duration::from_micros(1_234);
    let report = LoadReport { table: "t".into(), rows: 5, put: 4, deleted: 1, took, token };
    let written = Done::Written(Written { index: LogIndex(8), outcomes, replayed: true });
    let read = |done: Done| decode_answer(&encode_answer(&Ok(done))).expect("what was written").expect("no error");
    let Done::Written(found) = read(written) else { panic!("another answer") };
    assert_eq!((found.index, found.affected(), found.outcomes.len(), found.replayed), (LogIndex(8), 3, 2, true));
    let Done::Loaded(found) = read(Done::Loaded(report.clone())) else { panic!("another answer") };
    assert_eq!(found, report);
    assert!(matches!(read(Done::Cleaned(6, LogIndex(7))), Done::Cleaned(6, LogIndex(7))));
    assert!(matches!(read(Done::Refreshed(2, LogIndex(7))), Done::Refreshed(2, LogIndex(7))));
}

/// A caller must not see whether the node that it asked was the leader: code and text of an error are the same.
#[test]
fn an_error_keeps_its_code_and_its_text() {
    let errors = [
        NodeError::UnknownTable { table: "t".into() },
        NodeError::UnknownColumn { table: "t".into(), column: "c".into() },
        NodeError::NotLoaded { table: "t".into(), failure: Some("why".into()) },
        NodeError::NotLeader { group: "g".into(), leader: Some("b".into()) },
        NodeError::NotLeader { group: "g".into(), leader: None },
        NodeError::RequestIdReused { id: "x".into() },
        NodeError::Unknown,
        NodeError::Superseded,
        NodeError::Shutdown,
        NodeError::Redefined { table: "t".into() },
        NodeError::WriteTooLarge { bytes: 5, most: 4 },
        NodeError::NoSource { table: "t".into() },
        NodeError::Busy { what: "writes" },
    ];
    for error in errors {
        let answer = encode_answer(&Err(error.clone()));
        let Err(read) = decode_answer(&answer).expect("what was written") else { panic!("no error") };
        assert_eq!((read.sqlstate(), read.to_string()), (error.sqlstate(), error.to_string()));
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..16) {
        let bytes = [&[kind], &*bytes].concat();
        let _ = Command::decode(&bytes);
        let _ = decode_answer(&bytes);
    }
}
