//! How many calls a second two nodes make of each other over loopback, and how long one takes:
//! `cargo run --release -p cachesql-peer --example loopback`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cachesql_peer::{
    Call, Directory, Endpoint, Identity, Lane, NodeName, PeerDoor, Peers, Randomness, Refusal, Service, Services,
    TcpNetwork,
};

const ECHO: u16 = 1;
const CALLS: u32 = 200_000;

struct Echo;

#[async_trait::async_trait]
impl Service for Echo {
    async fn serve(&self, call: Call) -> Result<Bytes, Refusal> {
        Ok(call.payload)
    }
}

/// Makes calls from so many callers at a time; gives the time of each, in order.
async fn measure(peers: &Peers, to: &NodeName, lane: Lane, callers: u32, payload: &Bytes) -> Vec<Duration> {
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let (peers, to, payload) = (peers.clone(), to.clone(), payload.clone());
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            for _ in 0..CALLS / callers.max(20) {
                let started = Instant::now();
                let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
                match peers.call(&to, lane, ECHO, payload.clone(), deadline).await {
                    Ok(_) => times.push(started.elapsed()),
                    Err(error) => println!("{error}"),
                }
            }
            times
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap_or_default());
    }
    times.sort_unstable();
    times
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let randomness: Randomness = Arc::new(|into| into.fill(4));
    let directory = Directory::new([(NodeName::new("a")?, "127.0.0.1:1".to_owned())]);
    let endpoint = |node| -> Result<Endpoint, Box<dyn Error>> {
        let identity = Identity::new("loopback", node, b"not a secret at all")?;
        Ok(Endpoint::new(identity, directory.clone(), Arc::clone(&randomness)))
    };
    let door = PeerDoor::bind(TcpNetwork, "127.0.0.1:0", endpoint("b")?).await?;
    let b = NodeName::new("b")?;
    directory.insert(b.clone(), door.local_address());
    let _door = tokio::spawn(door.serve(Services::new().with(ECHO, Echo), std::future::pending()));
    let peers = Peers::new(TcpNetwork, endpoint("a")?);
    for (callers, bytes) in [(1, 100), (16, 100), (256, 100), (1_000, 100), (16, 64 << 10)] {
        let payload = Bytes::from(vec![7; bytes]);
        let started = Instant::now();
        let times = measure(&peers, &b, Lane::Normal, callers, &payload).await;
        let took = started.elapsed().as_secs_f64();
        let at = |share: usize| times.get(times.len() * share / 1_000).copied().unwrap_or_default();
        println!(
            "{callers} callers, {bytes} bytes: {:.0} calls a second, median {:?}, 99 % within {:?}",
            times.len() as f64 / took,
            at(500),
            at(990),
        );
    }
    let payload = Bytes::from(vec![7; 64 << 20]);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let started = Instant::now();
    peers.call(&b, Lane::Bulk, ECHO, payload, deadline).await?;
    println!("64 MiB there and back: {:?}", started.elapsed());
    Ok(())
}
