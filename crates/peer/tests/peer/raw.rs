//! The protocol a second time, from its description: what speaks it wrongly, on purpose, is made of this.

use std::time::Duration;

use bytes::{Buf, BufMut};
use cachesql_peer::Network;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::cluster::SECRET;
use crate::memory_network::{MemoryNetwork, MemoryStream};

pub(crate) const MAGIC: &[u8; 8] = b"CSQLPEER";

pub(crate) mod kind {
    pub(crate) const REQUEST: u8 = 1;
    pub(crate) const CONTINUE: u8 = 2;
    pub(crate) const ANSWER: u8 = 3;
    pub(crate) const REFUSAL: u8 = 4;
    pub(crate) const REJECTED: u8 = 5;
    pub(crate) const CANCEL: u8 = 6;
    pub(crate) const CANCELLED: u8 = 7;
    pub(crate) const PING: u8 = 8;
    pub(crate) const PONG: u8 = 9;
    pub(crate) const GOODBYE: u8 = 10;
}

/// HMAC-SHA256 over the parts, each after its length.
pub(crate) fn proof(secret: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// What a dialer says of itself.
#[derive(Clone)]
pub(crate) struct Greeting<'a> {
    pub(crate) versions: (u16, u16),
    pub(crate) lane: u8,
    pub(crate) names: [&'a str; 3],
    pub(crate) after: &'a [u8],
}

impl Greeting<'_> {
    /// Node a to node b of cluster shop.
    pub(crate) fn good() -> Greeting<'static> {
        Greeting { versions: (1, 1), lane: 2, names: ["shop", "a", "b"], after: &[] }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u16(self.versions.0);
        body.put_u16(self.versions.1);
        body.put_u8(self.lane);
        for name in self.names {
            body.put_u8(name.len() as u8);
            body.put_slice(name.as_bytes());
        }
        body.put_slice(&[9; 32]);
        body.put_slice(self.after);
        body
    }
}

pub(crate) fn sized(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u16).to_be_bytes().to_vec();
    bytes.put_slice(body);
    bytes
}

pub(crate) async fn connect(network: &MemoryNetwork) -> MemoryStream {
    network.connect("b:1").await.expect("a door")
}

/// Sends a body as a greeting and reads the challenge.
pub(crate) async fn greet(stream: &mut MemoryStream, body: &[u8]) -> [u8; 32] {
    stream.write_all(&[&MAGIC[..], &sized(body)].concat()).await.expect("written");
    let mut answer = [0; 40];
    stream.read_exact(&mut answer).await.expect("a challenge");
    assert_eq!(answer[..8], MAGIC[..]);
    answer[8..].try_into().expect("32 bytes")
}

/// Greets, proves a secret, and gives the verdict's body, whose proof it checks; empty, for a stranger.
pub(crate) async fn dial(stream: &mut MemoryStream, body: &[u8], secret: &[u8]) -> Vec<u8> {
    let challenge = greet(stream, body).await;
    let mine = proof(secret, &[b"cachesql peer dialer 1", body, &challenge]);
    stream.write_all(&mine).await.expect("written");
    let bytes = stream.read_u16().await.expect("a length");
    let mut verdict = vec![0; bytes.into()];
    stream.read_exact(&mut verdict).await.expect("a verdict");
    if !verdict.is_empty() {
        let mut theirs = [0; 32];
        stream.read_exact(&mut theirs).await.expect("a proof");
        assert_eq!(theirs, proof(secret, &[b"cachesql peer door 1", body, &challenge, &mine, &verdict]));
    }
    verdict
}

/// A connection of node a to the door of node b.
pub(crate) async fn dialed(network: &MemoryNetwork) -> MemoryStream {
    let mut stream = connect(network).await;
    assert_eq!(dial(&mut stream, &Greeting::good().body(), SECRET).await, [1, 0, 1]);
    stream
}

/// Reads a greeting and answers it with a challenge of ones, then reads the proof. Gives both.
pub(crate) async fn challenge(stream: &mut MemoryStream) -> (Vec<u8>, [u8; 32]) {
    let mut magic = [0; 8];
    stream.read_exact(&mut magic).await.expect("a greeting");
    let mut body = vec![0; stream.read_u16().await.expect("a length").into()];
    stream.read_exact(&mut body).await.expect("a body");
    stream.write_all(&[&MAGIC[..], &[1; 32]].concat()).await.expect("written");
    let mut theirs = [0; 32];
    stream.read_exact(&mut theirs).await.expect("a proof");
    assert_eq!(theirs, proof(SECRET, &[b"cachesql peer dialer 1", &body, &[1; 32]]));
    (body, theirs)
}

/// Gives a verdict, with a proof of a secret.
pub(crate) async fn judge(stream: &mut MemoryStream, greeting: &(Vec<u8>, [u8; 32]), verdict: &[u8], secret: &[u8]) {
    let mine = proof(secret, &[b"cachesql peer door 1", &greeting.0, &[1; 32], &greeting.1, verdict]);
    stream.write_all(&[&sized(verdict)[..], &mine].concat()).await.expect("written");
}

pub(crate) fn frame(kind: u8, id: u64, payload: &[u8]) -> Vec<u8> {
    let mut summed = Vec::new();
    summed.put_u32(payload.len() as u32);
    summed.put_u8(kind);
    summed.put_u64(id);
    let mut whole = summed.clone();
    summed.put_slice(payload);
    whole.put_u32(crc32fast::hash(&summed));
    whole.put_slice(payload);
    whole
}

pub(crate) fn request(id: u64, service: u16, total: u32, part: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_u16(service);
    payload.put_u32(60_000);
    payload.put_u32(total);
    payload.put_slice(part);
    frame(kind::REQUEST, id, &payload)
}

pub(crate) fn answer(id: u64, total: u32, part: &[u8]) -> Vec<u8> {
    frame(kind::ANSWER, id, &[&total.to_be_bytes()[..], part].concat())
}

/// The next frame; nothing, at the end.
pub(crate) async fn read_frame(stream: &mut MemoryStream) -> Option<(u8, u64, Vec<u8>)> {
    let mut head = [0; 17];
    stream.read_exact(&mut head).await.ok()?;
    let mut head = &head[..];
    let (bytes, kind, id, _) = (head.get_u32(), head.get_u8(), head.get_u64(), head.get_u32());
    let mut payload = vec![0; bytes as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((kind, id, payload))
}

/// The next frame that is neither ping nor pong; pings are answered.
pub(crate) async fn read_message(stream: &mut MemoryStream) -> Option<(u8, u64, Vec<u8>)> {
    let started = Instant::now();
    loop {
        let (kind, id, payload) = read_frame(stream).await?;
        assert!(started.elapsed() < Duration::from_secs(60), "nothing but pings for a minute");
        match kind {
            kind::PING => stream.write_all(&frame(kind::PONG, id, &[])).await.ok()?,
            kind::PONG => {}
            _ => return Some((kind, id, payload)),
        }
    }
}
