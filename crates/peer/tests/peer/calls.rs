//! Calls that go as they should, or are refused: answers, refusals, long messages, many at a time, cancellation.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cachesql_peer::{
    CODE_ANSWER_TOO_LONG, CODE_PANICKED, Call, CallError, FIRST_RESERVED_CODE, Lane, NotSent, Refusal, Rejection,
    Service, Services, Unknown,
};
use cachesql_types::limits;
use tokio::time::Instant;

use crate::cluster::{DESK, ECHO, Echo, desk, name, two};

/// Bytes that are different everywhere.
fn pattern(bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_and_the_service_knows_who_calls() {
    let (desk, mut visits) = desk();
    let two = two(Services::new().with(DESK, desk)).await;
    let deadline = Instant::now() + Duration::from_secs(4);
    let to = name("b");
    let call = two.a.call(&to, Lane::Urgent, DESK, Bytes::from_static(b"vote"), deadline);
    let serve = async {
        let visit = visits.recv().await.expect("a call");
        let Call { from, lane, version, service, payload, deadline: there } = visit.call;
        assert_eq!((from, lane, version, service, &payload[..]), (name("a"), Lane::Urgent, 1, DESK, &b"vote"[..]));
        assert_eq!(there, deadline);
        visit.answer.send(Ok(Bytes::from_static(b"granted"))).expect("waited for");
    };
    let (answer, ()) = tokio::join!(call, serve);
    assert_eq!(answer.expect("an answer"), "granted");
}

#[tokio::test(start_paused = true)]
async fn empty_and_long_messages_come_back_as_they_were() {
    let two = two(Services::new().with(ECHO, Echo)).await;
    let frame = limits::PEER_FRAME_BYTES;
    for bytes in [0, 1, frame - 11, frame - 10, frame - 9, frame - 4, frame - 3, 2 * frame, 5_000_000] {
        let sent = pattern(bytes);
        assert!(two.call(Lane::Normal, ECHO, sent.clone()).await.expect("an answer") == sent, "{bytes} bytes");
    }
}

/// Refuses, panics or answers at length, as it is told.
struct Moody;

#[async_trait::async_trait]
impl Service for Moody {
    async fn serve(&self, call: Call) -> Result<Bytes, Refusal> {
        match &call.payload[..] {
            b"refuse" => Err(Refusal::new(42, "not the leader: c is")),
            b"pretend" => Err(Refusal { code: CODE_PANICKED, message: "I am the door".into() }),
            b"panic" => panic!("as it was told"),
            _ => Ok(Bytes::from(vec![0; limits::PEER_URGENT_MESSAGE_BYTES + 1])),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_typed_and_a_panic_is_one() {
    let two = two(Services::new().with(7, Moody).with(ECHO, Echo)).await;
    let mut found = Vec::new();
    for told in ["refuse", "pretend", "panic", "at length"] {
        match two.call(Lane::Urgent, 7, told).await {
            Err(CallError::Refused { to, code, message }) => {
                assert_eq!(to, name("b"));
                found.push((code, message));
            }
            other => panic!("{told}: {other:?}"),
        }
    }
    assert_eq!(found[0], (42, "not the leader: c is".to_owned()));
    assert_eq!(found[1], (FIRST_RESERVED_CODE - 1, "I am the door".to_owned()));
    assert_eq!(found[2].0, CODE_PANICKED);
    assert_eq!(found[3].0, CODE_ANSWER_TOO_LONG);
    assert!(found[3].1.contains("1048577"), "{}", found[3].1);
    assert_eq!(two.network.connections().len(), 1, "all on one connection");
}

#[tokio::test(start_paused = true)]
async fn what_is_surely_not_executed_says_so() {
    let two = two(Services::new().with(ECHO, Echo)).await;
    let not_sent = |result: Result<Bytes, CallError>| match result {
        Err(CallError::NotSent { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert!(matches!(not_sent(two.call(Lane::Normal, 99, "x").await), NotSent::Rejected(Rejection::NoService)));
    let long = Bytes::from(vec![0; limits::PEER_URGENT_MESSAGE_BYTES + 1]);
    let NotSent::TooLong { bytes, most } = not_sent(two.call(Lane::Urgent, ECHO, long.clone()).await) else {
        panic!("too long for the urgent lane")
    };
    assert_eq!((bytes, most), (1_048_577, 1_048_576));
    assert!(two.call(Lane::Normal, ECHO, long).await.is_ok());
    let deadline = Instant::now() + Duration::from_secs(1);
    let to_c = two.a.call(&name("c"), Lane::Normal, ECHO, Bytes::new(), deadline).await;
    assert!(matches!(not_sent(to_c), NotSent::UnknownNode));
    let to_a = two.a.call(&name("a"), Lane::Normal, ECHO, Bytes::new(), deadline).await;
    assert!(matches!(not_sent(to_a), NotSent::OwnName));
    assert!(matches!(not_sent(two.call_within(Duration::ZERO, Lane::Normal, ECHO, "x").await), NotSent::Deadline));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_are_under_way_on_one_lane_and_answered_in_any_order() {
    const CALLS: usize = 1_000;
    let (desk, mut visits) = desk();
    let two = Arc::new(two(Services::new().with(DESK, desk)).await);
    let callers: Vec<_> = (0..CALLS)
        .map(|number| {
            let two = Arc::clone(&two);
            tokio::spawn(async move { two.call(Lane::Normal, DESK, number.to_string()).await })
        })
        .collect();
    let mut waiting = Vec::new();
    while waiting.len() < CALLS {
        waiting.push(visits.recv().await.expect("a call"));
    }
    // All are there, none is answered. Answer them from both ends, so that no order of arrival is the order of answers.
    let (early, late) = waiting.drain(..).enumerate().partition::<Vec<_>, _>(|(at, _)| at % 2 == 0);
    for (_, visit) in late.into_iter().rev().chain(early) {
        let answer = Bytes::from([b"answer to ", &visit.call.payload[..]].concat());
        visit.answer.send(Ok(answer)).expect("waited for");
    }
    for (number, caller) in callers.into_iter().enumerate() {
        let answer = caller.await.expect("no panic").expect("an answer");
        assert_eq!(answer, format!("answer to {number}"));
    }
    assert_eq!(two.network.connections().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_does_not_hold_up_later_answers() {
    let (desk, mut visits) = desk();
    let two = two(Services::new().with(DESK, desk).with(ECHO, Echo)).await;
    let slow = two.call(Lane::Normal, DESK, "slow");
    let others = async {
        let visit = visits.recv().await.expect("the slow call");
        for number in 0..10 {
            assert_eq!(two.call(Lane::Normal, ECHO, number.to_string()).await.expect("an answer"), number.to_string());
        }
        visit.answer.send(Ok("at last".into())).expect("still waited for");
    };
    let (slow, ()) = tokio::join!(slow, others);
    assert_eq!(slow.expect("an answer"), "at last");
}

#[tokio::test(start_paused = true)]
async fn a_long_message_does_not_hold_up_a_short_one_behind_it() {
    let (desk, mut visits) = desk();
    let two = two(Services::new().with(DESK, desk).with(ECHO, Echo)).await;
    assert!(two.call(Lane::Normal, ECHO, "connected").await.is_ok());
    // In the queue before the short one, or waiting for room in it.
    let long = || two.call(Lane::Normal, DESK, pattern(40 << 20));
    let mut long = Box::pin(async { tokio::join!(long(), long(), long()) });
    let short = async {
        let answer = two.call(Lane::Normal, ECHO, "short").await;
        assert!(visits.try_recv().is_err(), "none of the long ones is there yet");
        answer
    };
    tokio::select! {
        biased;
        _ = &mut long => panic!("nobody answers them"),
        short = short => assert_eq!(short.expect("an answer"), "short"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_that_is_not_read_keeps_nobody_from_asking() {
    let (desk, mut visits) = desk();
    let long = pattern(limits::PEER_MESSAGE_BYTES);
    let two = two(Services::new().with(DESK, desk).with(3, Long(long))).await;
    let mut answered = Box::pin(two.call_within(Duration::from_secs(600), Lane::Normal, 3, "long"));
    while two.network.connections().is_empty() {
        assert!(futures::poll!(&mut answered).is_pending());
        tokio::task::yield_now().await;
    }
    two.network.connections()[0].hold_dialer(true);
    let ask = two.call_within(Duration::from_secs(600), Lane::Normal, DESK, "short");
    tokio::select! {
        biased;
        _ = &mut answered => panic!("it cannot arrive"),
        _ = ask => panic!("it cannot be answered"),
        visit = visits.recv() => assert_eq!(visit.expect("a call").call.payload, "short"),
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("it was not asked"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_cancels_the_call_at_the_other_end() {
    let (desk, mut visits) = desk();
    let two = two(Services::new().with(DESK, desk).with(ECHO, Echo)).await;
    for way in ["dropped", "deadline"] {
        let wait = Duration::from_secs(if way == "dropped" { 600 } else { 2 });
        let mut call = Box::pin(two.call_within(wait, Lane::Normal, DESK, way));
        let mut visit = tokio::select! {
            biased;
            _ = &mut call => panic!("nobody answered it"),
            visit = visits.recv() => visit.expect("the call"),
        };
        if way == "deadline" {
            let error = call.await.expect_err("no answer");
            assert!(matches!(error, CallError::Unknown { why: Unknown::Deadline, .. }), "{error:?}");
        } else {
            drop(call);
        }
        visit.dropped().await;
        assert_eq!(two.call(Lane::Normal, ECHO, "still there").await.expect("an answer"), "still there");
    }
    assert_eq!(two.network.connections().len(), 1);
}

/// Answers at length, in some twenty frames.
struct Long(Bytes);

#[async_trait::async_trait]
impl Service for Long {
    async fn serve(&self, _: Call) -> Result<Bytes, Refusal> {
        Ok(self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_left_half_sent_or_half_answered_leave_the_connection_whole() {
    let long = pattern(20 * limits::PEER_FRAME_BYTES);
    let two = two(Services::new().with(3, Long(long.clone())).with(ECHO, Echo)).await;
    assert!(two.call(Lane::Bulk, ECHO, "connected").await.is_ok());
    let connection = two.network.connections().pop().expect("one");
    // A request of which some frames are on their way.
    connection.hold(true);
    let half_sent = two.call_within(Duration::from_secs(1), Lane::Bulk, ECHO, pattern(8 << 20)).await;
    assert!(matches!(half_sent, Err(CallError::NotSent { why: NotSent::Deadline, .. })), "{half_sent:?}");
    connection.hold(false);
    assert_eq!(two.call(Lane::Bulk, ECHO, "still there").await.expect("an answer"), "still there");
    // Answers that are left at every stage of their coming.
    for polls in 0..60 {
        let mut call = Box::pin(two.call(Lane::Bulk, 3, "long"));
        for _ in 0..polls {
            tokio::select! {
                biased;
                answer = &mut call => { assert!(answer.expect("an answer") == long); break; }
                () = tokio::task::yield_now() => {}
            }
        }
        drop(call);
    }
    assert!(two.call(Lane::Bulk, 3, "long").await.expect("an answer") == long);
    assert_eq!(two.network.connections().len(), 1);
    let cachesql_peer::LaneState::Connected { in_flight, .. } = two.a.status()[0].lanes[0].state else {
        panic!("connected")
    };
    assert_eq!(in_flight, 0, "every call was ended by the other side");
}

/// If both sides read no further while much waits to be written, each would wait for the other.
#[tokio::test(start_paused = true)]
async fn long_messages_both_ways_at_once_do_not_block_each_other() {
    let two = two(Services::new().with(ECHO, Echo)).await;
    let long = Bytes::from(vec![7; 40 << 20]);
    let call = || two.call(Lane::Bulk, ECHO, long.clone());
    let answers = tokio::join!(call(), call(), call());
    for answer in [answers.0, answers.1, answers.2] {
        assert!(answer.expect("an answer") == long);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_request_that_is_rejected_is_not_sent_to_its_end() {
    let two = two(Services::new().with(ECHO, Echo)).await;
    let rejected = two.call(Lane::Bulk, 99, pattern(8 << 20)).await;
    let Err(CallError::NotSent { why: NotSent::Rejected(Rejection::NoService), .. }) = rejected else {
        panic!("{rejected:?}")
    };
    assert_eq!(two.call(Lane::Bulk, ECHO, "still there").await.expect("an answer"), "still there");
    assert_eq!(two.network.connections().len(), 1);
}
