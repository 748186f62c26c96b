//! How two nodes come to know each other, both ways, by the cluster's secret. The messages are in [`crate::wire`].
//!
//! The dialer greets; the door challenges with a nonce, whatever the greeting says; the dialer proves that it knows the
//! secret; the door answers with a verdict and its own proof. Each proof is over all that was said before it, both nonces
//! among it, and begins with a label of its side, so that none can be replayed, nor one side's words be handed back to it.
//!
//! Until the dialer's proof holds, the door looks at nothing but the length of the greeting, and says nothing but its nonce:
//! a stranger learns that it is refused, and not why. One who knows the secret learns why. A dialer believes no verdict
//! but one with a proof, except the bare refusal, which anyone could make it believe by closing the connection.
//!
//! What follows on the connection is not sealed: who can change bytes on the way can change frames. That is TLS's to do,
//! through [`crate::network::Wrap`].

use bytes::{Buf, BufMut};
use cachesql_types::limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::HandshakeError;
use crate::identity::{Endpoint, NodeName, Versions};
use crate::wire::{DIALER_LABEL, DOOR_LABEL, Lane, MAGIC, NONCE_BYTES, PROOF_BYTES, VerdictTag};

type Result<T> = std::result::Result<T, HandshakeError>;

/// Who dialed, and what was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) dialer: NodeName,
    pub(crate) lane: Lane,
    pub(crate) version: u16,
}

struct Greeting {
    versions: Versions,
    lane: u8,
    cluster: NodeName,
    from: NodeName,
    to: NodeName,
}

/// Connects as `endpoint` to node `to`; gives the version that was agreed on.
pub(crate) async fn dial<S>(stream: &mut S, endpoint: &Endpoint, to: &NodeName, lane: Lane) -> Result<u16>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let identity = &endpoint.identity;
    let mut body = Vec::new();
    body.put_u16(endpoint.versions.lowest);
    body.put_u16(endpoint.versions.highest);
    body.put_u8(lane.number());
    for name in [&identity.cluster, &identity.node, to] {
        put_name(&mut body, name);
    }
    body.put_slice(&endpoint.nonce::<NONCE_BYTES>());
    let mut greeting = MAGIC.to_vec();
    put_length(&mut greeting, body.len());
    greeting.put_slice(&body);
    stream.write_all(&greeting).await?;
    stream.flush().await?;

    expect_magic(stream).await?;
    let mut challenge = [0; NONCE_BYTES];
    stream.read_exact(&mut challenge).await?;
    let proof = identity.secret.prove(&[DIALER_LABEL, &body, &challenge]);
    stream.write_all(&proof).await?;
    stream.flush().await?;

    let verdict = read_sized(stream).await?;
    if verdict.is_empty() {
        return Err(HandshakeError::Stranger { cluster: identity.cluster.clone() });
    }
    let mut door_proof = [0; PROOF_BYTES];
    stream.read_exact(&mut door_proof).await?;
    if !identity.secret.verify(&[DOOR_LABEL, &body, &challenge, &proof, &verdict], &door_proof) {
        return Err(HandshakeError::WrongSecret { cluster: identity.cluster.clone() });
    }
    read_verdict(&verdict, endpoint, to, lane)
}

fn read_verdict(mut verdict: &[u8], endpoint: &Endpoint, to: &NodeName, lane: Lane) -> Result<u16> {
    let identity = &endpoint.identity;
    let cut = |_| HandshakeError::Malformed("the verdict is cut");
    let tag = verdict.try_get_u8().map_err(cut)?;
    match VerdictTag::from_number(tag).ok_or(HandshakeError::Malformed("an unknown verdict"))? {
        VerdictTag::Accepted => {
            let version = verdict.try_get_u16().map_err(cut)?;
            let spoken = endpoint.versions;
            if version < spoken.lowest || version > spoken.highest {
                return Err(HandshakeError::Malformed("a version was chosen that was not offered"));
            }
            Ok(version)
        }
        VerdictTag::OtherCluster => {
            Err(HandshakeError::OtherCluster { expected: identity.cluster.clone(), found: get_name(&mut verdict)? })
        }
        VerdictTag::OtherNode => {
            Err(HandshakeError::OtherNode { expected: to.clone(), found: get_name(&mut verdict)? })
        }
        VerdictTag::UnknownNode => Err(HandshakeError::UnknownNode { name: identity.node.clone(), by: to.clone() }),
        VerdictTag::OwnName => Err(HandshakeError::OwnName { name: identity.node.clone() }),
        VerdictTag::Versions => {
            let (lowest, highest) = (verdict.try_get_u16().map_err(cut)?, verdict.try_get_u16().map_err(cut)?);
            Err(HandshakeError::Versions { expected: endpoint.versions, found: Versions { lowest, highest } })
        }
        VerdictTag::UnknownLane => Err(HandshakeError::UnknownLane(lane.number())),
        VerdictTag::Malformed => Err(HandshakeError::Malformed("the other side cannot read this one's greeting")),
    }
}

/// Answers one that connected; gives who it is. An error has been told to it, as far as it may know.
pub(crate) async fn answer<S>(stream: &mut S, endpoint: &Endpoint) -> Result<Agreed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    expect_magic(stream).await?;
    let body = read_sized(stream).await?;
    let challenge = endpoint.nonce::<NONCE_BYTES>();
    stream.write_all(&[&MAGIC[..], &challenge].concat()).await?;
    stream.flush().await?;

    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await?;
    let identity = &endpoint.identity;
    if !identity.secret.verify(&[DIALER_LABEL, &body, &challenge], &proof) {
        stream.write_all(&0_u16.to_be_bytes()).await?;
        stream.flush().await?;
        return Err(HandshakeError::WrongSecret { cluster: identity.cluster.clone() });
    }
    let judged = read_greeting(&body).and_then(|greeting| judge(greeting, endpoint));
    let verdict = write_verdict(&judged, endpoint);
    let door_proof = identity.secret.prove(&[DOOR_LABEL, &body, &challenge, &proof, &verdict]);
    let mut answer = Vec::new();
    put_length(&mut answer, verdict.len());
    answer.put_slice(&verdict);
    answer.put_slice(&door_proof);
    stream.write_all(&answer).await?;
    stream.flush().await?;
    judged
}

fn read_greeting(mut body: &[u8]) -> Result<Greeting> {
    let cut = |_| HandshakeError::Malformed("the greeting is cut");
    let versions = Versions { lowest: body.try_get_u16().map_err(cut)?, highest: body.try_get_u16().map_err(cut)? };
    let lane = body.try_get_u8().map_err(cut)?;
    let (cluster, from, to) = (get_name(&mut body)?, get_name(&mut body)?, get_name(&mut body)?);
    if body.len() < NONCE_BYTES {
        return Err(HandshakeError::Malformed("the greeting has no nonce"));
    }
    Ok(Greeting { versions, lane, cluster, from, to })
}

fn judge(greeting: Greeting, endpoint: &Endpoint) -> Result<Agreed> {
    let identity = &endpoint.identity;
    if greeting.cluster != identity.cluster {
        return Err(HandshakeError::OtherCluster { expected: identity.cluster.clone(), found: greeting.cluster });
    }
    if greeting.to != identity.node {
        return Err(HandshakeError::OtherNode { expected: identity.node.clone(), found: greeting.to });
    }
    if greeting.from == identity.node {
        return Err(HandshakeError::OwnName { name: greeting.from });
    }
    if !endpoint.directory.contains(&greeting.from) {
        return Err(HandshakeError::UnknownNode { name: greeting.from, by: identity.node.clone() });
    }
    let lane = Lane::from_number(greeting.lane).ok_or(HandshakeError::UnknownLane(greeting.lane))?;
    let versions = HandshakeError::Versions { expected: endpoint.versions, found: greeting.versions };
    let version = endpoint.versions.highest_common(greeting.versions).ok_or(versions)?;
    Ok(Agreed { dialer: greeting.from, lane, version })
}

fn write_verdict(judged: &Result<Agreed>, endpoint: &Endpoint) -> Vec<u8> {
    let identity = &endpoint.identity;
    let tag = match judged {
        Ok(_) => VerdictTag::Accepted,
        Err(HandshakeError::OtherCluster { .. }) => VerdictTag::OtherCluster,
        Err(HandshakeError::OtherNode { .. }) => VerdictTag::OtherNode,
        Err(HandshakeError::UnknownNode { .. }) => VerdictTag::UnknownNode,
        Err(HandshakeError::OwnName { .. }) => VerdictTag::OwnName,
        Err(HandshakeError::Versions { .. }) => VerdictTag::Versions,
        Err(HandshakeError::UnknownLane(_)) => VerdictTag::UnknownLane,
        Err(_) => VerdictTag::Malformed,
    };
    let mut verdict = vec![tag.number()];
    match (tag, judged) {
        (VerdictTag::Accepted, Ok(agreed)) => verdict.put_u16(agreed.version),
        (VerdictTag::OtherCluster, _) => put_name(&mut verdict, &identity.cluster),
        (VerdictTag::OtherNode, _) => put_name(&mut verdict, &identity.node),
        (VerdictTag::Versions, _) => {
            verdict.put_u16(endpoint.versions.lowest);
            verdict.put_u16(endpoint.versions.highest);
        }
        _ => {}
    }
    verdict
}

async fn expect_magic<S: AsyncRead + Unpin>(stream: &mut S) -> Result<()> {
    let mut found = [0; MAGIC.len()];
    stream.read_exact(&mut found).await?;
    if found == MAGIC { Ok(()) } else { Err(HandshakeError::NotANode { found }) }
}

/// A body whose length goes before it, and is checked before there is room for it.
async fn read_sized<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Vec<u8>> {
    let bytes = usize::from(stream.read_u16().await?);
    if bytes > limits::PEER_HANDSHAKE_BYTES {
        return Err(HandshakeError::TooLong { bytes });
    }
    let mut body = vec![0; bytes];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// Our own bodies are shorter than [`limits::PEER_HANDSHAKE_BYTES`], by a relation in `limits`.
fn put_length(into: &mut Vec<u8>, bytes: usize) {
    into.put_u16(u16::try_from(bytes).unwrap_or(u16::MAX));
}

fn put_name(into: &mut Vec<u8>, name: &NodeName) {
    let name = name.as_str();
    into.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
    into.put_slice(name.as_bytes());
}

fn get_name(from: &mut &[u8]) -> Result<NodeName> {
    let cut = HandshakeError::Malformed("a name is cut");
    let Ok(bytes) = from.try_get_u8() else { return Err(cut) };
    let Some((name, rest)) = from.split_at_checked(usize::from(bytes)) else { return Err(cut) };
    *from = rest;
    let name = std::str::from_utf8(name).map_err(|_| HandshakeError::Malformed("a name is not UTF-8"))?;
    NodeName::new(name).map_err(|_| HandshakeError::Malformed("a name that cannot be one"))
}
