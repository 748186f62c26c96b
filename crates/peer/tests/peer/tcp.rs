//! Over real sockets and real time: what the network in memory cannot show.

use std::time::Duration;

use bytes::Bytes;
use cachesql_peer::{Directory, Lane, Network, PeerDoor, Peers, Services, TcpNetwork};
use socket2::SockRef;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::cluster::{ECHO, Echo, endpoint, name};

#[tokio::test]
async fn sockets_send_at_once_and_are_kept_alive_at_both_ends() {
    let mut listener = TcpNetwork.bind("127.0.0.1:0").await.expect("a port");
    let address = TcpNetwork.local_address(&listener).expect("bound");
    let (near, far) = tokio::join!(TcpNetwork.connect(&address), TcpNetwork.accept(&mut listener));
    let (near, (far, remote)) = (near.expect("connected"), far.expect("accepted"));
    assert_eq!(remote, near.local_addr().expect("an address").to_string());
    for stream in [near, far] {
        assert!(stream.nodelay().expect("an option"));
        assert!(SockRef::from(&stream).keepalive().expect("an option"));
    }
}

async fn serve_b(directory: &Directory) -> (oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let door = PeerDoor::bind(TcpNetwork, "127.0.0.1:0", endpoint("b", directory)).await.expect("a port");
    directory.insert(name("b"), door.local_address());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = door.serve(Services::new().with(ECHO, Echo), async {
        let _ = stopped.await;
    });
    (stop, tokio::spawn(served))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_meet_in_all_lanes_and_again_after_a_restart_at_another_port() {
    let directory = Directory::new([(name("a"), "127.0.0.1:1".to_owned())]);
    let (stop, served) = serve_b(&directory).await;
    let a = Peers::new(TcpNetwork, endpoint("a", &directory));
    let b = name("b");
    let call = |lane, payload: Bytes| a.call(&b, lane, ECHO, payload, Instant::now() + Duration::from_secs(30));
    let long = Bytes::from(vec![7; 20 << 20]);
    let (urgent, normal, bulk) = tokio::join!(
        call(Lane::Urgent, "urgent".into()),
        call(Lane::Normal, "normal".into()),
        call(Lane::Bulk, long.clone()),
    );
    assert_eq!((urgent.expect("an answer"), normal.expect("an answer")), ("urgent".into(), "normal".into()));
    assert!(bulk.expect("an answer") == long);
    assert_eq!(a.status()[0].lanes.len(), 3);

    stop.send(()).expect("served");
    served.await.expect("no panic");
    let (_stop, _served) = serve_b(&directory).await;
    let started = Instant::now();
    while let Err(error) = call(Lane::Normal, "again".into()).await {
        assert!(error.is_not_sent(), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(20), "{error:?}");
        tokio::task::yield_now().await;
    }
}
