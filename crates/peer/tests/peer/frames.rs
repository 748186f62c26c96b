//! Nodes that know the secret and break the protocol: each ends its own connection, with an error that says what it was.

use std::time::Duration;

use bytes::Bytes;
use cachesql_peer::{CallError, Ended, FrameError, Lane, Network, NotSent, Peers, Rejection, Services, Unknown};
use cachesql_types::limits;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::cluster::{DESK, ECHO, Echo, SECRET, desk, directory, endpoint, name, randomness, two};
use crate::memory_network::{MemoryNetwork, MemoryStream};
use crate::raw::{self, answer, frame, kind, request};

const FRAME: usize = limits::PEER_FRAME_BYTES;
const MESSAGE: usize = limits::PEER_MESSAGE_BYTES;

/// Waits for the connection to end; what comes before that is read.
async fn ends(stream: &mut MemoryStream) {
    let end = async { while raw::read_message(stream).await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), end).await.expect("the connection ends");
}

#[tokio::test(start_paused = true)]
async fn what_a_dialer_does_wrong_ends_its_connection_and_no_other() {
    let (desk, _visits) = desk();
    let two = two(Services::new().with(ECHO, Echo).with(DESK, desk)).await;
    assert!(two.call(Lane::Urgent, ECHO, "x").await.is_ok());
    let mut flipped = request(1, ECHO, 1, b"x");
    *flipped.last_mut().expect("a byte") ^= 1;
    let expected = crc32fast::hash(&[&flipped[..13], &flipped[17..]].concat());
    let found = u32::from_be_bytes(flipped[13..17].try_into().expect("four bytes"));
    let long = (FRAME as u32 + 1).to_be_bytes().to_vec();
    let malformed = |kind, why| FrameError::Malformed { kind, why };
    let cases = [
        (long, FrameError::TooLong { bytes: FRAME + 1, most: FRAME }),
        (frame(99, 1, b""), FrameError::UnknownKind { kind: 99 }),
        (flipped, FrameError::Checksum { expected, found }),
        (frame(kind::CONTINUE, 1, b"x"), FrameError::ContinuationOfNothing { id: 1 }),
        (
            [request(1, ECHO, 1, b"x"), frame(kind::CONTINUE, 1, b"y")].concat(),
            FrameError::ContinuationOfNothing { id: 1 },
        ),
        ([request(5, ECHO, 0, b""), request(5, ECHO, 0, b"")].concat(), FrameError::IdUsedTwice { id: 5, last: 5 }),
        ([request(5, DESK, 0, b""), request(4, ECHO, 0, b"")].concat(), FrameError::IdUsedTwice { id: 4, last: 5 }),
        (request(0, ECHO, 0, b""), FrameError::IdUsedTwice { id: 0, last: 0 }),
        (frame(kind::CANCEL, 1, b""), FrameError::CancelOfNothing { id: 1 }),
        (frame(kind::PONG, 1_000, b""), FrameError::AnswerToNothing { id: 1_000 }),
        (answer(1, 0, b""), FrameError::WrongSide { kind: kind::ANSWER }),
        (frame(kind::CANCELLED, 1, b""), FrameError::WrongSide { kind: kind::CANCELLED }),
        ([frame(kind::GOODBYE, 0, b""), request(1, ECHO, 0, b"")].concat(), FrameError::AfterGoodbye { id: 1 }),
        (request(1, ECHO, 1, b"xy"), malformed(kind::REQUEST, "it is longer than it says")),
        (frame(kind::REQUEST, 1, &[0; 9]), malformed(kind::REQUEST, "its head is cut")),
        (
            [request(1, ECHO, 3, b"x"), frame(kind::CONTINUE, 1, b"xyz")].concat(),
            malformed(kind::CONTINUE, "more than is missing, or nothing"),
        ),
        (
            [request(1, ECHO, 3, b"x"), frame(kind::CONTINUE, 1, b"")].concat(),
            malformed(kind::CONTINUE, "more than is missing, or nothing"),
        ),
        (frame(kind::PING, 1, b"x"), malformed(kind::PING, "it has a payload")),
        (request(1, ECHO, MESSAGE as u32 + 1, b"x"), FrameError::TooLong { bytes: MESSAGE + 1, most: MESSAGE }),
    ];
    for (said, expected) in cases {
        let mut stream = raw::dialed(&two.network).await;
        stream.write_all(&said).await.expect("written");
        ends(&mut stream).await;
        let guest = two.b.status.ended().pop().expect("one ended");
        let Ended::Protocol(error) = guest.ended else { panic!("{expected:?}: {guest:?}") };
        assert_eq!(error, expected);
    }
    let mut stream = raw::dialed(&two.network).await;
    stream.write_all(&request(1, ECHO, 1, b"x")[..20]).await.expect("written");
    stream.shutdown().await.expect("closed");
    while raw::read_frame(&mut stream).await.is_some() {}
    let guest = two.b.status.ended().pop().expect("one ended");
    assert!(matches!(guest.ended, Ended::Protocol(FrameError::Cut { bytes: 20 })), "{guest:?}");

    assert!(two.call(Lane::Urgent, ECHO, "x").await.is_ok());
    assert!(two.b.status.ended().iter().all(|guest| guest.lane == Lane::Normal));
    assert_eq!(two.a.status()[0].lanes[0].last_error, None, "the urgent connection noticed nothing");
}

/// How a call ends when the door, played by the test, answers call 1 with these bytes.
async fn answered(said: &[u8]) -> Result<Bytes, CallError> {
    let network = MemoryNetwork::default();
    let mut listener = network.bind("b:1").await.expect("free");
    let a = Peers::new(network.clone(), endpoint("a", &directory()));
    let door = async {
        let (mut stream, _) = network.accept(&mut listener).await.expect("a connection");
        let greeting = raw::challenge(&mut stream).await;
        raw::judge(&mut stream, &greeting, &[1, 0, 1], SECRET).await;
        let (kind, id, payload) = raw::read_message(&mut stream).await.expect("the call");
        assert_eq!((kind, id, &payload[..2], &payload[6..]), (kind::REQUEST, 1, &[0, 1][..], &b"\0\0\0\x03ask"[..]));
        stream.write_all(said).await.expect("written");
        ends(&mut stream).await;
    };
    let to = name("b");
    let call = async {
        let deadline = Instant::now() + Duration::from_secs(60);
        let answer = a.call(&to, Lane::Normal, ECHO, Bytes::from_static(b"ask"), deadline).await;
        // Until the connection ends as well, for the test's door waits for that.
        drop(a);
        answer
    };
    tokio::join!(call, door).0
}

#[tokio::test(start_paused = true)]
async fn what_a_door_does_wrong_ends_the_connection_and_the_call_is_unknown() {
    let malformed = |kind, why| FrameError::Malformed { kind, why };
    let cases = [
        (answer(2, 0, b""), FrameError::AnswerToNothing { id: 2 }),
        (frame(kind::REFUSAL, 2, b"\0\x01no"), FrameError::AnswerToNothing { id: 2 }),
        (frame(kind::REJECTED, 2, &[1]), FrameError::AnswerToNothing { id: 2 }),
        (frame(kind::CANCELLED, 1, b""), FrameError::AnswerToNothing { id: 1 }),
        ([answer(1, 2, b"x"), answer(1, 2, b"x")].concat(), FrameError::AnswerToNothing { id: 1 }),
        (frame(kind::CONTINUE, 1, b"x"), FrameError::ContinuationOfNothing { id: 1 }),
        (answer(1, 1, b"xy"), malformed(kind::ANSWER, "it is longer than it says")),
        (frame(kind::ANSWER, 1, &[0; 3]), malformed(kind::ANSWER, "its length is cut")),
        (
            [answer(1, 3, b"x"), frame(kind::CONTINUE, 1, b"xyz")].concat(),
            malformed(kind::CONTINUE, "more than is missing, or nothing"),
        ),
        (answer(1, MESSAGE as u32 + 1, b"x"), FrameError::TooLong { bytes: MESSAGE + 1, most: MESSAGE }),
        (frame(kind::REFUSAL, 1, b"\0"), malformed(kind::REFUSAL, "its code is cut")),
        (frame(kind::REFUSAL, 1, b"\0\x01\xFF"), malformed(kind::REFUSAL, "its text is not UTF-8")),
        (frame(kind::REJECTED, 1, &[9]), malformed(kind::REJECTED, "an unknown rejection")),
        (frame(kind::REJECTED, 1, &[]), malformed(kind::REJECTED, "it is not one byte long")),
        (request(1, ECHO, 0, b""), FrameError::WrongSide { kind: kind::REQUEST }),
        (frame(kind::CANCEL, 1, b""), FrameError::WrongSide { kind: kind::CANCEL }),
        (frame(0, 1, b""), FrameError::UnknownKind { kind: 0 }),
    ];
    for (said, expected) in cases {
        match answered(&said).await {
            Err(CallError::Unknown { why: Unknown::Ended(Ended::Protocol(error)), .. }) => assert_eq!(error, expected),
            other => panic!("{expected:?}: {other:?}"),
        }
    }
    assert_eq!(answered(&answer(1, 2, b"ok")).await.expect("an answer"), "ok");
    assert_eq!(
        answered(&[answer(1, 3, b"o"), frame(kind::CONTINUE, 1, b"ld")].concat()).await.expect("an answer"),
        "old"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_which_there_is_no_room_is_called_off_and_the_call_is_unknown() {
    let network = MemoryNetwork::default();
    let mut listener = network.bind("b:1").await.expect("free");
    let a = Peers::new(network.clone(), endpoint("a", &directory()));
    let (to, deadline) = (name("b"), Instant::now() + Duration::from_secs(60));
    let call = || a.call(&to, Lane::Normal, ECHO, Bytes::new(), deadline);
    let door = async {
        let (mut stream, _) = network.accept(&mut listener).await.expect("a connection");
        let greeting = raw::challenge(&mut stream).await;
        raw::judge(&mut stream, &greeting, &[1, 0, 1], SECRET).await;
        // Two answers of the greatest length fill what the connection may hold, and the third is one too many.
        for id in 1..=3 {
            assert_eq!(raw::read_message(&mut stream).await.expect("a call").1, id);
            stream.write_all(&answer(id, MESSAGE as u32, b"begin")).await.expect("written");
        }
        assert_eq!(raw::read_message(&mut stream).await, Some((kind::CANCEL, 3, vec![])));
        // It was on its way when it was called off, and is skipped.
        let rest = [frame(kind::CONTINUE, 3, b"on"), frame(kind::CANCELLED, 3, b"")].concat();
        stream.write_all(&rest).await.expect("written");
        for id in [1, 2] {
            stream.write_all(&frame(kind::CONTINUE, id, b"more")).await.expect("written");
        }
        drop(stream);
    };
    let (one, two, three, ()) = tokio::join!(call(), call(), call(), door);
    for whole in [one, two] {
        assert!(matches!(whole, Err(CallError::Unknown { why: Unknown::Ended(Ended::Closed), .. })), "{whole:?}");
    }
    assert!(matches!(three, Err(CallError::Unknown { why: Unknown::NoRoom { bytes: MESSAGE }, .. })), "{three:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_rejected_is_not_sent_to_its_end() {
    let network = MemoryNetwork::default();
    let mut listener = network.bind("b:1").await.expect("free");
    let a = Peers::new(network.clone(), endpoint("a", &directory()));
    let (to, deadline) = (name("b"), Instant::now() + Duration::from_secs(60));
    let call = a.call(&to, Lane::Normal, ECHO, Bytes::from(vec![0; 100 * FRAME]), deadline);
    let door = async {
        let (mut stream, _) = network.accept(&mut listener).await.expect("a connection");
        let greeting = raw::challenge(&mut stream).await;
        raw::judge(&mut stream, &greeting, &[1, 0, 1], SECRET).await;
        assert_eq!(raw::read_message(&mut stream).await.expect("a call").0, kind::REQUEST);
        stream.write_all(&frame(kind::REJECTED, 1, &[2])).await.expect("written");
        let mut parts = 0;
        loop {
            match raw::read_message(&mut stream).await.expect("more") {
                (kind::CONTINUE, 1, _) => parts += 1,
                (kind::CANCEL, 1, _) => break,
                other => panic!("{other:?}"),
            }
        }
        // Those that were on their way when it was rejected.
        assert!(parts < 10, "{parts} parts");
    };
    let (rejected, ()) = tokio::join!(call, door);
    assert!(rejected.is_err_and(|error| error.is_not_sent()));
}

#[tokio::test(start_paused = true)]
async fn a_farewell_gives_back_at_once_what_is_not_on_its_way() {
    let network = MemoryNetwork::default();
    let mut listener = network.bind("b:1").await.expect("free");
    let a = Peers::new(network.clone(), endpoint("a", &directory()));
    let (to, deadline) = (name("b"), Instant::now() + Duration::from_secs(60));
    let call = |bytes| a.call(&to, Lane::Normal, ECHO, Bytes::from(vec![0; bytes]), deadline);
    let door = async {
        let (mut stream, _) = network.accept(&mut listener).await.expect("a connection");
        let greeting = raw::challenge(&mut stream).await;
        raw::judge(&mut stream, &greeting, &[1, 0, 1], SECRET).await;
        assert_eq!(raw::read_message(&mut stream).await.expect("a call").0, kind::REQUEST);
        // The pipe is full of the first call now, and the second stands behind it.
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(&frame(kind::GOODBYE, 0, b"")).await.expect("written");
        std::future::pending::<()>().await;
    };
    let behind = async {
        while network.connections().is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        call(1).await
    };
    tokio::select! {
        biased;
        _ = call(100 * FRAME) => panic!("the long one is on its way"),
        () = door => {}
        behind = behind => {
            let why = match behind { Err(CallError::NotSent { why, .. }) => why, other => panic!("{other:?}") };
            assert!(matches!(why, NotSent::Rejected(Rejection::Leaving)), "{why:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_much_is_rejected_before_it_is_kept_and_the_rest_of_it_is_skipped() {
    let (desk, mut visits) = desk();
    let two = two(Services::new().with(ECHO, Echo).with(DESK, desk)).await;
    // Two messages of the greatest length fill what a connection may hold.
    let mut stream = raw::dialed(&two.network).await;
    for id in 1..=3 {
        stream.write_all(&request(id, ECHO, MESSAGE as u32, b"begin")).await.expect("written");
    }
    assert_eq!(raw::read_message(&mut stream).await, Some((kind::REJECTED, 3, vec![1])));
    stream.write_all(&frame(kind::CONTINUE, 3, &vec![0; FRAME])).await.expect("written");
    stream.write_all(&frame(kind::CANCEL, 3, b"")).await.expect("written");
    // A message that is given up makes room.
    stream.write_all(&frame(kind::CANCEL, 1, b"")).await.expect("written");
    assert_eq!(raw::read_message(&mut stream).await, Some((kind::CANCELLED, 1, vec![])));
    stream.write_all(&request(4, ECHO, 2, b"ok")).await.expect("written");
    assert_eq!(raw::read_message(&mut stream).await, Some((kind::ANSWER, 4, b"\0\0\0\x02ok".to_vec())));
    drop(stream);

    // As many calls as may be under way, and one.
    let mut stream = raw::dialed(&two.network).await;
    let most = limits::PEER_IN_FLIGHT as u64;
    for id in 1..=most {
        stream.write_all(&request(id, DESK, 0, b"")).await.expect("written");
    }
    stream.write_all(&request(most + 1, DESK, 0, b"")).await.expect("written");
    assert_eq!(raw::read_message(&mut stream).await, Some((kind::REJECTED, most + 1, vec![1])));
    let first = visits.recv().await.expect("a call");
    first.answer.send(Ok(Bytes::new())).expect("waited for");
    assert_eq!(raw::read_message(&mut stream).await, Some((kind::ANSWER, 1, vec![0; 4])));
    stream.write_all(&request(most + 2, ECHO, 0, b"")).await.expect("written");
    assert_eq!(raw::read_message(&mut stream).await, Some((kind::ANSWER, most + 2, vec![0; 4])));
}

#[tokio::test(start_paused = true)]
async fn a_dialer_that_reads_no_answers_is_read_no_further_and_hung_up_on() {
    let (desk, mut visits) = desk();
    let two = two(Services::new().with(DESK, desk)).await;
    let mut stream = raw::dialed(&two.network).await;
    let started = Instant::now();
    let answer = Bytes::from(vec![0; 1 << 20]);
    let (mut taken, mut id) = (0, 0);
    // One call after another; every answer waits to be written, until the door takes no more calls.
    loop {
        id += 1;
        stream.write_all(&request(id, DESK, 0, b"")).await.expect("the pipe holds it");
        match tokio::time::timeout(Duration::from_millis(1), visits.recv()).await {
            Ok(visit) => visit.expect("a call").answer.send(Ok(answer.clone())).expect("waited for"),
            Err(_) => break,
        }
        taken += 1;
        assert!(taken < 1_000, "the door takes calls on and on");
    }
    let queue = limits::PEER_UNWRITTEN_BYTES >> 20;
    assert!((queue..=queue + 1).contains(&taken), "{taken} answers of 1 MiB");
    while two.b.status.ended().is_empty() {
        assert!(started.elapsed() < 2 * limits::PEER_STALL, "it is not hung up on");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(matches!(two.b.status.ended()[0].ended, Ended::Stalled));
    assert!(started.elapsed() <= limits::PEER_STALL + Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn rejections_that_are_not_read_do_not_pile_up() {
    let two = two(Services::new()).await;
    let mut stream = raw::dialed(&two.network).await;
    // The door has no service at all; 10 million rejections would be asked for, if it went on reading.
    let requests: Vec<u8> = (1..=1_000).flat_map(|id| request(id, ECHO, 0, b"")).collect();
    let mut wrote = 0;
    let mut next = requests.clone();
    while tokio::time::timeout(Duration::from_secs(1), stream.write_all(&next)).await.is_ok() {
        wrote += 1;
        assert!(wrote < 100, "the door reads on and on");
        let first = wrote * 1_000;
        next = (first + 1..=first + 1_000).flat_map(|id| request(id, ECHO, 0, b"")).collect();
    }
    assert!(two.b.status.ended().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dialer_that_falls_silent_is_hung_up_on_in_under_five_seconds() {
    let two = two(Services::new()).await;
    let mut stream = raw::dialed(&two.network).await;
    let started = Instant::now();
    // It reads, and answers no ping.
    while raw::read_frame(&mut stream).await.is_some() {}
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(matches!(two.b.status.ended()[0].ended, Ended::Silent));
}

/// Frames with right check sums and any content, from one who knows the secret.
#[tokio::test(start_paused = true)]
async fn any_frames_end_their_connection_or_are_answered_and_the_door_still_serves() {
    let two = two(Services::new().with(ECHO, Echo)).await;
    let random = randomness(2);
    let byte = || {
        let mut byte = [0];
        random(&mut byte);
        byte[0]
    };
    for _ in 0..3_000 {
        let mut stream = raw::dialed(&two.network).await;
        let mut said = Vec::new();
        for _ in 0..1 + byte() % 12 {
            let id = u64::from(byte() % 6);
            let payload = vec![byte() % 3; usize::from(byte() % 24)];
            said.extend(match byte() % 3 {
                0 => request(id, u16::from(byte() % 2), u32::from(byte() % 24), &payload),
                1 => frame(kind::CONTINUE, id, &payload),
                _ => frame(1 + byte() % 10, id, &payload),
            });
        }
        stream.write_all(&said).await.expect("the pipe holds it");
        stream.shutdown().await.expect("closed");
        while raw::read_frame(&mut stream).await.is_some() {}
    }
    assert!(two.call(Lane::Urgent, ECHO, "x").await.is_ok());
    assert_eq!(two.b.status.connected(), [(name("a"), Lane::Urgent)]);
}
