//! Nodes that stop, move, fall silent, do not read, or are taken out of the directory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cachesql_peer::{CallError, Ended, HandshakeError, Lane, LaneState, NotSent, Peers, Rejection, Services, Unknown};
use cachesql_types::limits;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::{DESK, ECHO, Echo, Two, Visit, desk, directory, endpoint, name, open_door, two};
use crate::memory_network::MemoryNetwork;

async fn two_with_desk() -> (Arc<Two>, UnboundedReceiver<Visit>) {
    let (desk, visits) = desk();
    (Arc::new(two(Services::new().with(DESK, desk).with(ECHO, Echo)).await), visits)
}

fn spawn_call(
    two: &Arc<Two>,
    lane: Lane,
    service: u16,
    payload: Bytes,
) -> tokio::task::JoinHandle<Result<Bytes, CallError>> {
    let two = Arc::clone(two);
    tokio::spawn(async move { two.call_within(Duration::from_secs(600), lane, service, payload).await })
}

fn state(peers: &Peers) -> LaneState {
    peers.status()[0].lanes[0].state.clone()
}

/// Calls until an answer comes; each wait is a step of the paused clock.
async fn call_until_answered(two: &Two) {
    while two.call(Lane::Normal, ECHO, "there?").await.is_err() {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn urgent_calls_are_answered_while_64_mib_of_bulk_stand_still() {
    let (two, _visits) = two_with_desk().await;
    assert!(two.call(Lane::Bulk, ECHO, "connected").await.is_ok());
    let bulk_connection = two.network.connections().pop().expect("one");
    let sent = Bytes::from(vec![7; 64 << 20]);
    let mut bulk = spawn_call(&two, Lane::Bulk, ECHO, sent.clone());
    tokio::task::yield_now().await;
    bulk_connection.hold(true);
    let started = Instant::now();
    for number in 0..100 {
        let answer = two.call_within(Duration::from_millis(100), Lane::Urgent, ECHO, number.to_string()).await;
        assert_eq!(answer.expect("an answer"), number.to_string());
    }
    assert_eq!(started.elapsed(), Duration::ZERO, "none waited for anything");
    assert!(!bulk.is_finished());
    bulk_connection.hold(false);
    // And while they are on their way.
    while !bulk.is_finished() {
        assert!(two.call_within(Duration::from_millis(100), Lane::Urgent, ECHO, "heartbeat").await.is_ok());
    }
    assert!((&mut bulk).await.expect("no panic").expect("an answer") == sent);
    assert_eq!(two.network.connections().len(), 2, "a connection for each lane");
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_noticed_in_under_five_seconds_and_replaced() {
    let (two, mut visits) = two_with_desk().await;
    let call = spawn_call(&two, Lane::Normal, DESK, "lost".into());
    let visit = visits.recv().await.expect("the call");
    two.network.connections()[0].cut();
    let started = Instant::now();
    let error = call.await.expect("no panic").expect_err("no answer");
    assert!(matches!(error, CallError::Unknown { why: Unknown::Ended(Ended::Silent), .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // The door noticed as well: nobody waits for what it does.
    let mut visit = visit;
    visit.dropped().await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    call_until_answered(&two).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(two.b.status.ended().iter().any(|guest| matches!(guest.ended, Ended::Silent)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_stays() {
    let (two, _visits) = two_with_desk().await;
    assert!(two.call(Lane::Normal, ECHO, "x").await.is_ok());
    sleep(Duration::from_secs(3_600)).await;
    assert!(two.call(Lane::Normal, ECHO, "x").await.is_ok());
    assert_eq!(two.network.connections().len(), 1);
    let LaneState::Connected { since, heard_ago, round_trip, in_flight, version } = state(&two.a) else {
        panic!("{:?}", state(&two.a))
    };
    assert_eq!((since, in_flight, version), (Duration::from_secs(3_600), 0, 1));
    assert!(heard_ago <= limits::PEER_PING_INTERVAL);
    assert_eq!(round_trip, Some(Duration::ZERO), "no time passes on the way");
    assert_eq!(two.b.status.connected(), [(name("a"), Lane::Normal)]);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_held_up_does_not_take_the_others_for_gone() {
    let (two, _visits) = two_with_desk().await;
    assert!(two.call(Lane::Normal, ECHO, "x").await.is_ok());
    // The clock jumps, and nothing runs in between.
    tokio::time::advance(Duration::from_secs(60)).await;
    sleep(Duration::from_secs(60)).await;
    assert!(two.call(Lane::Normal, ECHO, "x").await.is_ok());
    assert_eq!(two.network.connections().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_stops_reading_fills_a_bounded_queue_and_is_hung_up_on() {
    let (two, _visits) = two_with_desk().await;
    assert!(two.call(Lane::Normal, ECHO, "connected").await.is_ok());
    two.network.connections()[0].hold(true);
    let started = Instant::now();
    let payload = Bytes::from(vec![0; 4 << 20]);
    let calls: Vec<_> = (0..8).map(|_| spawn_call(&two, Lane::Normal, ECHO, payload.clone())).collect();
    // Four of them fill the queue; one that comes now waits within its own deadline.
    let late = two.call_within(Duration::from_secs(1), Lane::Normal, ECHO, payload.clone()).await;
    assert!(matches!(late, Err(CallError::NotSent { why: NotSent::Deadline, .. })), "{late:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(1));
    let LaneState::Connected { in_flight, .. } = state(&two.a) else { panic!("{:?}", state(&two.a)) };
    assert_eq!(in_flight, 4, "what is beyond the queue is not queued");
    // The door does not hear anything, since it does not read, and hangs up.
    for call in calls {
        let error = call.await.expect("no panic").expect_err("no answer");
        assert!(error.is_not_sent(), "{error:?}");
    }
    assert!(started.elapsed() <= limits::PEER_STALL, "{:?}", started.elapsed());
    assert!(two.a.status()[0].lanes[0].last_error.is_some());
}

#[tokio::test(start_paused = true)]
async fn one_call_more_than_may_be_under_way_waits_within_its_deadline() {
    let (two, mut visits) = two_with_desk().await;
    let calls: Vec<_> =
        (0..limits::PEER_IN_FLIGHT).map(|_| spawn_call(&two, Lane::Normal, DESK, Bytes::new())).collect();
    let first = visits.recv().await.expect("a call");
    let started = Instant::now();
    let late = two.call_within(Duration::from_secs(2), Lane::Normal, ECHO, "late").await;
    assert!(matches!(late, Err(CallError::NotSent { why: NotSent::Deadline, .. })), "{late:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    // One that waits gets the place of the first that ends.
    let waits = spawn_call(&two, Lane::Normal, ECHO, "in time".into());
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    first.answer.send(Ok(Bytes::new())).expect("waited for");
    assert_eq!(waits.await.expect("no panic").expect("an answer"), "in time");
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_restarted_at_another_address_is_found() {
    let (two, mut visits) = two_with_desk().await;
    let call = spawn_call(&two, Lane::Normal, DESK, "lost".into());
    let _visit = visits.recv().await.expect("the call");
    two.b.task.abort();
    let error = call.await.expect("no panic").expect_err("no answer");
    assert!(matches!(error, CallError::Unknown { why: Unknown::Ended(Ended::Closed), .. }), "{error:?}");
    // Until it is found again calls fail at once: none waits for its deadline.
    tokio::task::yield_now().await;
    let before = Instant::now();
    let down = two.call(Lane::Normal, ECHO, "x").await.expect_err("nobody is there");
    assert!(down.is_not_sent(), "{down:?}");
    assert_eq!(before.elapsed(), Duration::ZERO);
    sleep(Duration::from_secs(60)).await;
    let before = Instant::now();
    let down = two.call(Lane::Normal, ECHO, "x").await.expect_err("nobody is there");
    assert!(matches!(&down, CallError::NotSent { why: NotSent::Unreachable(HandshakeError::Io(_)), .. }), "{down:?}");
    assert_eq!(before.elapsed(), Duration::ZERO);
    let LaneState::Down { next_try } = state(&two.a) else { panic!("{:?}", state(&two.a)) };
    assert!(next_try <= limits::PEER_BACKOFF_MOST);

    let _door = open_door(&two.network, "b:2", endpoint("b", &two.directory), Services::new().with(ECHO, Echo)).await;
    two.directory.insert(name("b"), "b:2");
    let before = Instant::now();
    call_until_answered(&two).await;
    assert!(before.elapsed() <= Duration::from_millis(10), "a new address is tried at once: {:?}", before.elapsed());
    assert_eq!(two.a.status()[0].lanes[0].address, "b:2");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_restarted_where_it_was_is_found_within_the_back_off() {
    let (two, _visits) = two_with_desk().await;
    call_until_answered(&two).await;
    two.b.task.abort();
    sleep(Duration::from_secs(60)).await;
    assert!(two.call(Lane::Normal, ECHO, "x").await.is_err());
    let _door = open_door(&two.network, "b:1", endpoint("b", &two.directory), Services::new().with(ECHO, Echo)).await;
    let before = Instant::now();
    call_until_answered(&two).await;
    assert!(before.elapsed() <= limits::PEER_BACKOFF_MOST + Duration::from_millis(10), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_answers_what_is_under_way() {
    let (two, mut visits) = two_with_desk().await;
    let call = spawn_call(&two, Lane::Normal, DESK, "under way".into());
    let visit = visits.recv().await.expect("the call");
    two.b.stop();
    // The farewell crosses; then new calls are surely not executed, and the old one is answered.
    let late = loop {
        match two.call(Lane::Normal, ECHO, "x").await {
            Ok(_) => sleep(Duration::from_millis(1)).await,
            Err(error) => break error,
        }
        assert!(!two.b.task.is_finished(), "it said no farewell");
    };
    let CallError::NotSent { why: NotSent::Rejected(Rejection::Leaving), .. } = late else { panic!("{late:?}") };
    assert!(!call.is_finished() && !two.b.task.is_finished());
    visit.answer.send(Ok("to the end".into())).expect("still waited for");
    assert_eq!(call.await.expect("no panic").expect("an answer"), "to the end");
    let before = Instant::now();
    while !two.b.task.is_finished() {
        tokio::task::yield_now().await;
    }
    assert_eq!(before.elapsed(), Duration::ZERO, "it does not wait for the grace to pass");
}

#[tokio::test(start_paused = true)]
async fn when_the_grace_is_over_calls_are_ended() {
    let (two, mut visits) = two_with_desk().await;
    let call = spawn_call(&two, Lane::Normal, DESK, "for ever".into());
    let _visit = visits.recv().await.expect("the call");
    let started = Instant::now();
    two.b.stop();
    let error = call.await.expect("no panic").expect_err("no answer");
    assert!(matches!(error, CallError::Unknown { why: Unknown::Ended(Ended::Goodbye), .. }), "{error:?}");
    assert_eq!(started.elapsed(), limits::SHUTDOWN_GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_the_directory_is_hung_up_on_by_both() {
    let (two, mut visits) = two_with_desk().await;
    let call = spawn_call(&two, Lane::Normal, DESK, "under way".into());
    let _visit = visits.recv().await.expect("the call");
    two.directory.remove(&name("b"));
    let error = call.await.expect("no panic").expect_err("no answer");
    assert!(matches!(error, CallError::Unknown { why: Unknown::Ended(Ended::Moved), .. }), "{error:?}");
    let gone = two.call(Lane::Normal, ECHO, "x").await;
    assert!(matches!(gone, Err(CallError::NotSent { why: NotSent::UnknownNode, .. })), "{gone:?}");
    assert_eq!(two.a.status(), [], "it leaves nothing behind");

    // A door that no longer knows a node, while the node has not heard of it.
    let (network, of_b) = (MemoryNetwork::default(), directory());
    let door = open_door(&network, "b:1", endpoint("b", &of_b), Services::new().with(ECHO, Echo)).await;
    let a = Peers::new(network, endpoint("a", &directory()));
    let (to, deadline) = (name("b"), Instant::now() + Duration::from_secs(60));
    assert!(a.call(&to, Lane::Normal, ECHO, Bytes::new(), deadline).await.is_ok());
    of_b.remove(&name("a"));
    sleep(limits::PEER_PING_INTERVAL).await;
    let error = loop {
        match a.call(&to, Lane::Normal, ECHO, Bytes::new(), deadline).await {
            Err(CallError::NotSent { why: NotSent::Unreachable(error), .. }) => break error,
            _ => sleep(Duration::from_millis(10)).await,
        }
        assert!(Instant::now() < deadline, "nobody hangs up");
    };
    let HandshakeError::UnknownNode { name: found, by } = error else { panic!("{error:?}") };
    assert_eq!((found, by), (name("a"), name("b")));
    assert!(matches!(door.status.ended()[0].ended, Ended::Moved));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_connects_anew_replaces_its_old_connection() {
    let (two, mut visits) = two_with_desk().await;
    let call = spawn_call(&two, Lane::Normal, DESK, "from before".into());
    let mut visit = visits.recv().await.expect("the call");
    let after = Peers::new(two.network.clone(), endpoint("a", &two.directory));
    let deadline = Instant::now() + Duration::from_secs(1);
    assert!(after.call(&name("b"), Lane::Normal, ECHO, Bytes::new(), deadline).await.is_ok());
    visit.dropped().await;
    assert!(matches!(two.b.status.ended()[0].ended, Ended::Replaced));
    assert_eq!(two.b.status.connected(), [(name("a"), Lane::Normal)]);
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn nobody_at_an_address_that_swallows_everything_is_a_typed_error_in_time() {
    let (network, directory) = (MemoryNetwork::default(), directory());
    // It accepts, and says nothing.
    let mut listener = cachesql_peer::Network::bind(&network, "b:1").await.expect("free");
    let a = Peers::new(network.clone(), endpoint("a", &directory));
    let started = Instant::now();
    let to = name("b");
    let call = a.call(&to, Lane::Urgent, ECHO, Bytes::new(), started + Duration::from_secs(60));
    let (answer, accepted) = tokio::join!(call, cachesql_peer::Network::accept(&network, &mut listener));
    assert!(accepted.is_ok());
    let Err(CallError::NotSent { why: NotSent::Unreachable(HandshakeError::TimedOut), .. }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(started.elapsed(), limits::PEER_HANDSHAKE_TIMEOUT);
    // From now on it is known to be out of reach.
    let started = Instant::now();
    assert!(
        timeout(Duration::ZERO, a.call(&to, Lane::Urgent, ECHO, Bytes::new(), started + Duration::from_secs(60)))
            .await
            .expect("at once")
            .is_err_and(|error| error.is_not_sent())
    );
}
