//! Every size, count and time that bounds something in the client, by name.

use std::time::Duration;

/// Time to connect to one node, unless configured (`cachesql.connectTimeout`).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for one node to answer once it is connected, unless configured (`cachesql.readTimeout`).
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a whole call, whatever nodes do, unless configured (`cachesql.deadline`).
pub const DEADLINE: Duration = Duration::from_secs(15);

/// Failures in a row after which a node is left out.
pub const BREAKER_FAILURES: u32 = 3;
/// How long a node is left out at first; it doubles with each probe that fails, and up to a quarter is added by chance.
pub const BREAKER_FIRST: Duration = Duration::from_millis(500);
/// How long a node is left out at most, before what chance adds.
pub const BREAKER_MOST: Duration = Duration::from_secs(30);

/// Times that a read goes through the members of a group; before the second the routes are asked for.
pub const READ_ROUNDS: usize = 2;
/// Nodes that one write is sent to, at most, whatever they say of who leads.
pub const WRITE_HOPS: usize = 32;
/// How long a write waits for a group to find a leader, at most; its deadline may be nearer.
pub const ELECTION_WAIT: Duration = Duration::from_secs(3);
/// Pause before a group is asked again who leads; it doubles each time.
pub const ELECTION_PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest pause between two such questions.
pub const ELECTION_PAUSE_MOST: Duration = Duration::from_millis(400);

/// How long one node may take to tell the routes.
pub const ROUTES_TIMEOUT: Duration = Duration::from_secs(1);
/// Calls do not ask for the routes again before that.
pub const ROUTES_PAUSE: Duration = Duration::from_millis(250);
/// How long a node is asked to hold its answer until the routes change.
pub const FOLLOW_WAIT: Duration = Duration::from_secs(30);
/// How much longer than that its answer is waited for.
pub const FOLLOW_GRACE: Duration = Duration::from_secs(5);
/// Pause between two questions for the routes when a node fails to hold its answer, or to answer.
pub const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// One read in so many goes to any node under `nearest`, so that one that became near is noticed.
pub const NEAREST_EXPLORES: u64 = 32;

/// Connections to one node that are kept while nobody uses them.
pub const IDLE_CONNECTIONS: usize = 64;
/// How long an unused connection is kept; less than a node keeps it.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of one answer: it is held whole, so that what does not fit is an error and not the end of the process.
pub const ANSWER_BYTES: usize = 1 << 30;
/// Bytes of an answer that tells routes.
pub const ROUTES_BYTES: usize = 16 << 20;
/// Characters of an error's text that are kept.
pub const MESSAGE_CHARS: usize = 4_096;

// Relations that the code counts on.
const _: () = assert!(BREAKER_FIRST.as_millis() <= BREAKER_MOST.as_millis());
const _: () = assert!(IDLE_TIMEOUT.as_millis() < cachesql_types::limits::HTTP_IDLE_TIMEOUT.as_millis());
const _: () = assert!(ELECTION_WAIT.as_millis() < DEADLINE.as_millis());
const _: () = assert!(ELECTION_PAUSE_FIRST.as_millis() <= ELECTION_PAUSE_MOST.as_millis());
const _: () = assert!(READ_ROUNDS > 0 && WRITE_HOPS > 1 && BREAKER_FAILURES > 0);
