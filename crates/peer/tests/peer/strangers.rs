//! The handshake: who is refused, by which side, and what each learns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cachesql_peer::{CallError, DoorStatus, HandshakeError, Lane, Network, NotSent, Peers, Services, Side, Versions};
use cachesql_types::limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::cluster::{ECHO, Echo, SECRET, Served, directory, endpoint, endpoint_of, name, open_door, randomness};
use crate::memory_network::{MemoryNetwork, MemoryStream};
use crate::raw::{self, Greeting, MAGIC};

async fn door_of_b(network: &MemoryNetwork) -> Served {
    open_door(network, "b:1", endpoint("b", &directory()), Services::new().with(ECHO, Echo)).await
}

/// How the first call of these peers to node b fails.
async fn refused(peers: &Peers) -> HandshakeError {
    let deadline = Instant::now() + Duration::from_secs(30);
    match peers.call(&name("b"), Lane::Normal, ECHO, Bytes::new(), deadline).await {
        Err(CallError::NotSent { why: NotSent::Unreachable(error), .. }) => error,
        other => panic!("{other:?}"),
    }
}

fn last_refused(status: &DoorStatus) -> HandshakeError {
    status.refused().pop().expect("one was refused").error
}

/// All that comes until the end.
async fn rest(stream: &mut MemoryStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("an end");
    bytes
}

#[tokio::test(start_paused = true)]
async fn a_wrong_secret_is_refused_and_the_stranger_learns_nothing_else() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let other_secret = b"the secret of somebody else";
    let stranger = Peers::new(network.clone(), endpoint_of("shop", "a", other_secret, &directory()));
    let error = refused(&stranger).await;
    assert!(matches!(&error, HandshakeError::Stranger { cluster } if *cluster == name("shop")), "{error:?}");
    let error = last_refused(&door.status);
    assert!(matches!(&error, HandshakeError::WrongSecret { cluster } if *cluster == name("shop")), "{error:?}");

    // Byte for byte: whatever is wrong beside the secret, a stranger gets a nonce, and two bytes of zero.
    let good = Greeting::good();
    for greeting in [
        good.clone(),
        Greeting { names: ["other", "a", "b"], ..good.clone() },
        Greeting { names: ["shop", "nobody", "b"], ..good.clone() },
        Greeting { versions: (7, 9), lane: 99, names: ["", "", ""], after: b"later" },
    ] {
        let mut stream = raw::connect(&network).await;
        let body = greeting.body();
        assert_eq!(raw::dial(&mut stream, &body, other_secret).await, b"");
        assert_eq!(rest(&mut stream).await, b"");
    }
    let mut stream = raw::connect(&network).await;
    raw::greet(&mut stream, b"not a greeting at all").await;
    stream.write_all(&[0; 32]).await.expect("written");
    assert_eq!(rest(&mut stream).await, [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn another_cluster_is_refused_and_both_names_are_named() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let stranger = Peers::new(network, endpoint_of("bank", "a", SECRET, &directory()));
    let HandshakeError::OtherCluster { expected, found } = refused(&stranger).await else { panic!("other cluster") };
    assert_eq!((expected, found), (name("bank"), name("shop")));
    let HandshakeError::OtherCluster { expected, found } = last_refused(&door.status) else { panic!("other cluster") };
    assert_eq!((expected, found), (name("shop"), name("bank")));
}

#[tokio::test(start_paused = true)]
async fn another_node_at_the_address_is_noticed_and_both_names_are_named() {
    let network = MemoryNetwork::default();
    let door = open_door(&network, "b:1", endpoint("c", &directory()), Services::new()).await;
    let a = Peers::new(network, endpoint("a", &directory()));
    let HandshakeError::OtherNode { expected, found } = refused(&a).await else { panic!("other node") };
    assert_eq!((expected, found), (name("b"), name("c")));
    let HandshakeError::OtherNode { expected, found } = last_refused(&door.status) else { panic!("other node") };
    assert_eq!((expected, found), (name("c"), name("b")));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_no_member_is_refused_and_named() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let d = Peers::new(network, endpoint("d", &directory()));
    for error in [refused(&d).await, last_refused(&door.status)] {
        let HandshakeError::UnknownNode { name: found, by } = error else { panic!("{error:?}") };
        assert_eq!((found, by), (name("d"), name("b")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_with_the_doors_own_name_is_refused() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let mut stream = raw::connect(&network).await;
    let greeting = Greeting { names: ["shop", "b", "b"], ..Greeting::good() };
    assert_eq!(raw::dial(&mut stream, &greeting.body(), SECRET).await, [5]);
    assert_eq!(rest(&mut stream).await, b"");
    let HandshakeError::OwnName { name: found } = last_refused(&door.status) else { panic!("own name") };
    assert_eq!(found, name("b"));
}

#[tokio::test(start_paused = true)]
async fn without_a_common_version_both_ranges_are_named_and_with_one_the_highest_is_taken() {
    let network = MemoryNetwork::default();
    let range = |lowest, highest| Versions { lowest, highest };
    let mut b = endpoint("b", &directory());
    b.versions = range(2, 5);
    let door = open_door(&network, "b:1", b, Services::new().with(ECHO, Echo)).await;
    let mut a = endpoint("a", &directory());
    a.versions = range(6, 8);
    let HandshakeError::Versions { expected, found } = refused(&Peers::new(network.clone(), a.clone())).await else {
        panic!("no common version")
    };
    assert_eq!((expected, found), (range(6, 8), range(2, 5)));
    let error = last_refused(&door.status);
    assert_eq!(error.to_string(), "this node speaks versions 2 to 5, the other 6 to 8");

    a.versions = range(1, 4);
    let a = Peers::new(network, a);
    let deadline = Instant::now() + Duration::from_secs(1);
    assert!(a.call(&name("b"), Lane::Normal, ECHO, Bytes::new(), deadline).await.is_ok());
    let cachesql_peer::LaneState::Connected { version, .. } = a.status()[0].lanes[0].state else { panic!("connected") };
    assert_eq!(version, 4);
}

#[tokio::test(start_paused = true)]
async fn a_greeting_that_cannot_be_read_is_refused_and_one_of_a_later_version_is_read() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let good = Greeting::good().body();
    let mut no_name = good.clone();
    no_name[5] = 200;
    let mut not_utf8 = good.clone();
    not_utf8[6] = 0xFF;
    let mut control = good.clone();
    control[6] = b'\n';
    for (body, verdict) in [
        (&b""[..], 8),
        (&good[..3], 8),
        (&good[..good.len() - 1], 8),
        (&no_name, 8),
        (&not_utf8, 8),
        (&control, 8),
        (&Greeting { lane: 0, ..Greeting::good() }.body(), 7),
    ] {
        let mut stream = raw::connect(&network).await;
        assert_eq!(raw::dial(&mut stream, body, SECRET).await, [verdict], "{body:?}");
        assert_eq!(rest(&mut stream).await, b"");
    }
    assert_eq!(door.status.refused().len(), 7);
    let later = Greeting { versions: (1, 2), after: b"what a later version says", ..Greeting::good() };
    assert_eq!(raw::dial(&mut raw::connect(&network).await, &later.body(), SECRET).await, [1, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn lengths_times_and_first_bytes_are_bounded_at_the_door() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    // More than a greeting may have: refused by its length, before any of it is there.
    let mut stream = raw::connect(&network).await;
    let too_long = limits::PEER_HANDSHAKE_BYTES + 1;
    stream.write_all(&[&MAGIC[..], &(too_long as u16).to_be_bytes()].concat()).await.expect("written");
    assert_eq!(rest(&mut stream).await, b"");
    assert!(matches!(last_refused(&door.status), HandshakeError::TooLong { bytes } if bytes == too_long));
    // Something else than a node.
    let mut stream = raw::connect(&network).await;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("written");
    assert_eq!(rest(&mut stream).await, b"");
    assert!(matches!(last_refused(&door.status), HandshakeError::NotANode { found } if found == *b"GET / HT"));
    // One that does not go on, at each step.
    let body = Greeting::good().body();
    for (at, said) in [(0, vec![]), (8, MAGIC.to_vec()), (48, [&MAGIC[..], &raw::sized(&body)].concat())] {
        let started = Instant::now();
        let mut stream = raw::connect(&network).await;
        stream.write_all(&said).await.expect("written");
        let answered = rest(&mut stream).await.len();
        assert_eq!(answered, if at == 48 { 40 } else { 0 });
        assert_eq!(started.elapsed(), limits::PEER_HANDSHAKE_TIMEOUT);
        assert!(matches!(last_refused(&door.status), HandshakeError::TimedOut));
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_are_bounded_and_cannot_keep_a_member_out() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let mut idle = Vec::new();
    for _ in 0..limits::PEER_STRANGERS {
        idle.push(raw::connect(&network).await);
    }
    while door.status.strangers() < limits::PEER_STRANGERS {
        tokio::task::yield_now().await;
    }
    let started = Instant::now();
    let a = Peers::new(network.clone(), endpoint("a", &directory()));
    assert!(a.call(&name("b"), Lane::Normal, ECHO, Bytes::new(), started + Duration::from_secs(1)).await.is_ok());
    assert_eq!(rest(&mut idle[0]).await, b"", "the oldest had to go");
    assert_eq!(started.elapsed(), Duration::ZERO, "and before its time was over");
    assert_eq!(door.status.strangers(), limits::PEER_STRANGERS - 1);
    assert_eq!(door.status.connected(), [(name("a"), Lane::Normal)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_is_not_good_a_second_time() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let body = Greeting::good().body();
    let mut first = raw::connect(&network).await;
    let challenge = raw::greet(&mut first, &body).await;
    let proof = raw::proof(SECRET, &[b"cachesql peer dialer 1", &body, &challenge]);
    first.write_all(&proof).await.expect("written");
    assert_eq!(first.read_u16().await.expect("a verdict"), 3);
    // The same bytes again: the door's nonce is another.
    let mut again = raw::connect(&network).await;
    assert_ne!(raw::greet(&mut again, &body).await, challenge);
    again.write_all(&proof).await.expect("written");
    assert_eq!(rest(&mut again).await, [0, 0]);
    assert!(matches!(last_refused(&door.status), HandshakeError::WrongSecret { .. }));
}

/// What a dialer makes of a door that is played by the test.
async fn dialed_by_a<F: Future<Output = ()>>(play: impl FnOnce(MemoryStream) -> F) -> HandshakeError {
    let network = MemoryNetwork::default();
    let mut listener = network.bind("b:1").await.expect("free");
    let a = Peers::new(network.clone(), endpoint("a", &directory()));
    let door = async {
        let (stream, _) = network.accept(&mut listener).await.expect("a connection");
        play(stream).await;
    };
    tokio::join!(refused(&a), door).0
}

#[tokio::test(start_paused = true)]
async fn a_door_that_does_not_know_the_secret_is_refused_whatever_it_says() {
    let accepted = [1, 0, 1];
    // Another secret.
    let error = dialed_by_a(|mut stream| async move {
        let greeting = raw::challenge(&mut stream).await;
        raw::judge(&mut stream, &greeting, &accepted, b"the secret of somebody else").await;
        rest(&mut stream).await;
    });
    assert!(matches!(error.await, HandshakeError::WrongSecret { .. }));
    // The dialer's own proof, handed back to it, and one with the dialer's label over all that the door's is over.
    for forged in [0, 1] {
        let error = dialed_by_a(|mut stream| async move {
            let (body, theirs) = raw::challenge(&mut stream).await;
            let labelled = raw::proof(SECRET, &[b"cachesql peer dialer 1", &body, &[1; 32], &theirs, &accepted]);
            let mine = if forged == 0 { theirs } else { labelled };
            stream.write_all(&[&raw::sized(&accepted)[..], &mine].concat()).await.expect("written");
            rest(&mut stream).await;
        });
        assert!(matches!(error.await, HandshakeError::WrongSecret { .. }));
    }
    // A verdict that was changed on the way: version 1 was proven, 0 is said.
    let error = dialed_by_a(|mut stream| async move {
        let (body, theirs) = raw::challenge(&mut stream).await;
        let mine = raw::proof(SECRET, &[b"cachesql peer door 1", &body, &[1; 32], &theirs, &accepted]);
        stream.write_all(&[&raw::sized(&[1, 0, 0])[..], &mine].concat()).await.expect("written");
        rest(&mut stream).await;
    });
    assert!(matches!(error.await, HandshakeError::WrongSecret { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_door_that_speaks_nonsense_is_a_typed_error() {
    let error = dialed_by_a(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").await.expect("written");
        rest(&mut stream).await;
    });
    assert!(matches!(error.await, HandshakeError::NotANode { found } if found == *b"HTTP/1.1"));
    let error = dialed_by_a(|mut stream| async move {
        raw::challenge(&mut stream).await;
        stream.write_all(&[0xFF, 0xFF]).await.expect("written");
        rest(&mut stream).await;
    });
    assert!(matches!(error.await, HandshakeError::TooLong { bytes: 0xFFFF }));
    // It knows the secret, and still says what cannot be.
    for verdict in [&[9][..], &[1], &[1, 0, 2], &[2], &[2, 5, b'x'], &[6, 0]] {
        let error = dialed_by_a(|mut stream| async move {
            let greeting = raw::challenge(&mut stream).await;
            raw::judge(&mut stream, &greeting, verdict, SECRET).await;
            rest(&mut stream).await;
        });
        let error = error.await;
        assert!(matches!(error, HandshakeError::Malformed(_)), "{verdict:?}: {error:?}");
    }
    let error = dialed_by_a(|stream| async move { drop(stream) });
    assert!(matches!(error.await, HandshakeError::Io(_)));
}

#[tokio::test(start_paused = true)]
async fn each_connection_is_wrapped_at_both_ends_before_anything_is_said() {
    let network = MemoryNetwork::default();
    let sides = Arc::new(Mutex::new(Vec::new()));
    let wrapped = |node| {
        let (sides, mut endpoint) = (Arc::clone(&sides), endpoint(node, &directory()));
        endpoint.wrap = Arc::new(move |stream, side| {
            sides.lock().expect("not poisoned").push(side.clone());
            let fails = side == Side::Door;
            Box::pin(async move { if fails { Err(std::io::Error::other("no certificate")) } else { Ok(stream) } })
        });
        endpoint
    };
    let door = open_door(&network, "b:1", wrapped("b"), Services::new().with(ECHO, Echo)).await;
    let error = refused(&Peers::new(network, wrapped("a"))).await;
    assert!(matches!(error, HandshakeError::Io(_)), "{error:?}");
    assert_eq!(last_refused(&door.status).to_string(), "the connection failed: no certificate");
    let mut sides = sides.lock().expect("not poisoned").clone();
    sides.sort_by_key(|side| *side == Side::Door);
    assert_eq!(sides, [Side::Dialer(name("b")), Side::Door]);
}

/// Random bytes, some of which begin as a greeting does, so that every step of the handshake is reached.
#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_random_strings_are_refused_and_the_door_still_serves() {
    let network = MemoryNetwork::default();
    let door = door_of_b(&network).await;
    let random = randomness(1);
    let good = Greeting::good().body();
    for round in 0..100_000_u32 {
        let mut bytes = [0; 96];
        random(&mut bytes);
        let used = usize::from(bytes[0]) % bytes.len();
        let bytes = &bytes[1..=used.max(1)];
        let said = match round % 4 {
            0 => bytes.to_vec(),
            1 => [&MAGIC[..], bytes].concat(),
            2 => [&MAGIC[..], &raw::sized(bytes), bytes].concat(),
            _ => [&MAGIC[..], &raw::sized(&good), bytes].concat(),
        };
        let mut stream = raw::connect(&network).await;
        stream.write_all(&said).await.expect("the pipe holds it");
        stream.shutdown().await.expect("closed");
        let answer = rest(&mut stream).await;
        assert!([0, 40, 42].contains(&answer.len()), "{said:02x?}: {answer:02x?}");
        if answer.len() == 42 {
            assert_eq!(answer[40..], [0, 0]);
        }
    }
    assert_eq!((door.status.strangers(), door.status.connected()), (0, vec![]));
    assert_eq!(door.status.refused().len(), limits::PEER_GUESTS_REMEMBERED);
    let a = Peers::new(network, endpoint("a", &directory()));
    let deadline = Instant::now() + Duration::from_secs(1);
    assert!(a.call(&name("b"), Lane::Normal, ECHO, Bytes::new(), deadline).await.is_ok());
}
