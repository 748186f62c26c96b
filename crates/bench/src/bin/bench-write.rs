//! `bench-write rows|etcd ADDRESS WRITERS SECONDS`: so many writers, each with one small write under way, against the node at the
//! address; it prints writes a second. `bench-write visible LEADER FOLLOWER,FOLLOWER COUNT`: writes one row after the other, and
//! prints how long after its answer each is seen on every follower, and how long the same row takes from the leader and back: the
//! 99th percentile of both, in microseconds.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What a row holds beside its key, and a value of etcd.
const TEXT: &str = "a text of sixty-four bytes, as a small row of a table has, or so";
/// Writers that share a connection to etcd, as its own clients do.
const STREAMS: usize = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench-write: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(async {
        match words.as_slice() {
            ["visible", leader, followers, count] => visible(leader, followers, count.parse()?).await,
            [kind, address, writers, seconds] => {
                let (writers, seconds) = (writers.parse()?, Duration::from_secs(seconds.parse()?));
                match *kind {
                    "rows" => rows(address, writers, seconds).await,
                    "etcd" => etcd(address, writers, seconds).await,
                    other => Err(format!("unknown kind {other:?}").into()),
                }
            }
            _ => Err("usage: bench-write rows|etcd ADDRESS WRITERS SECONDS | visible LEADER FOLLOWERS COUNT".into()),
        }
    });
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-write: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What writers count together.
#[derive(Default)]
struct Tally {
    next: AtomicU64,
    done: AtomicU64,
}

/// Keys differ from run to run.
fn first_key() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(0)
}

fn rate(tally: &Tally, began: Instant) -> String {
    format!("{:.1}", tally.done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

async fn connect(address: &str) -> Outcome<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It ends with the sender.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

async fn put_row(sender: &mut SendRequest<Full<Bytes>>, address: &str, key: u64) -> Outcome<()> {
    let body = format!("{{\"id\":{key},\"v\":\"{TEXT}\"}}");
    let request = Request::builder().method(Method::POST).uri("/rest/written").header(HOST, address);
    let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body)))?;
    sender.ready().await?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if status.is_success() { Ok(()) } else { Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()) }
}

async fn rows(address: &str, writers: usize, seconds: Duration) -> Outcome<String> {
    let tally = Arc::new(Tally { next: AtomicU64::new(first_key()), ..Tally::default() });
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..writers {
        let (tally, address) = (tally.clone(), address.to_owned());
        tasks.spawn(async move {
            let mut sender = connect(&address).await?;
            while began.elapsed() < seconds {
                put_row(&mut sender, &address, tally.next.fetch_add(1, Ordering::Relaxed)).await?;
                tally.done.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(rate(&tally, began))
}

/// A PutRequest of etcd's KV service as gRPC frames it: no compression, a length, and the key (1) and value (2) in protobuf's wire
/// format.
fn put_request(key: u64) -> Bytes {
    let key = key.to_be_bytes();
    let mut message = BytesMut::new();
    for (field, bytes) in [(0x0A_u8, &key[..]), (0x12, TEXT.as_bytes())] {
        message.put_u8(field);
        // Shorter than 128 bytes: one byte of a varint.
        message.put_u8(u8::try_from(bytes.len()).unwrap_or(127));
        message.put_slice(bytes);
    }
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(0));
    framed.put_slice(&message);
    framed.freeze()
}

async fn etcd(address: &str, writers: usize, seconds: Duration) -> Outcome<String> {
    let tally = Arc::new(Tally { next: AtomicU64::new(first_key()), ..Tally::default() });
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for first in (0..writers).step_by(STREAMS) {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = h2::client::handshake(stream).await?;
        tokio::spawn(async move { drop(connection.await) });
        for _ in first..writers.min(first + STREAMS) {
            let (sender, tally, address) = (sender.clone(), tally.clone(), address.to_owned());
            tasks.spawn(async move {
                while began.elapsed() < seconds {
                    put_value(&sender, &address, tally.next.fetch_add(1, Ordering::Relaxed)).await?;
                    tally.done.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::Ok(())
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(rate(&tally, began))
}

async fn put_value(sender: &h2::client::SendRequest<Bytes>, address: &str, key: u64) -> Outcome<()> {
    let mut sender = sender.clone().ready().await?;
    let request = hyper::http::Request::builder()
        .method("POST")
        .uri(format!("http://{address}/etcdserverpb.KV/Put"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (answer, mut body) = sender.send_request(request, false)?;
    body.send_data(put_request(key), true)?;
    let mut answer = answer.await?.into_body();
    while let Some(data) = answer.data().await {
        let length = data?.len();
        answer.flow_control().release_capacity(length)?;
    }
    let trailers = answer.trailers().await?.unwrap_or_default();
    match trailers.get("grpc-status").map(|status| status.as_bytes() == b"0") {
        Some(true) => Ok(()),
        _ => Err(format!("etcd refused: {trailers:?}").into()),
    }
}

async fn get_row(sender: &mut SendRequest<Full<Bytes>>, address: &str, key: u64) -> Outcome<bool> {
    let request = Request::builder().uri(format!("/rest/written?id=eq.{key}")).header(HOST, address);
    sender.ready().await?;
    let answer = sender.send_request(request.body(Full::new(Bytes::new()))?).await?;
    let body = answer.into_body().collect().await?.to_bytes();
    Ok(body.len() > 2)
}

async fn visible(leader: &str, followers: &str, count: u64) -> Outcome<String> {
    let mut leading = connect(leader).await?;
    let mut following = Vec::new();
    for address in followers.split(',') {
        following.push((connect(address).await?, address.to_owned()));
    }
    let (first, mut seen, mut trips) = (first_key(), Vec::new(), Vec::new());
    for key in first..first.saturating_add(count) {
        put_row(&mut leading, leader, key).await?;
        let answered = Instant::now();
        let looks = following.iter_mut().map(|(sender, address)| async {
            while !get_row(sender, address, key).await? {}
            Outcome::Ok(answered.elapsed())
        });
        let mut last = Duration::ZERO;
        for took in futures::future::join_all(looks).await {
            last = last.max(took?);
        }
        seen.push(last);
        let began = Instant::now();
        get_row(&mut leading, leader, key).await?;
        trips.push(began.elapsed());
    }
    Ok(format!("{} {}", percentile(&mut seen), percentile(&mut trips)))
}

/// The 99th percentile in microseconds.
fn percentile(times: &mut [Duration]) -> u128 {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) * 99 / 100).map_or(0, Duration::as_micros)
}
