//! Every size, depth, count and time that bounds something, by name, in one place.

use std::time::Duration;

/// Columns of one table.
pub const MAX_COLUMNS: usize = 1_600;
/// Columns of one key or index.
pub const MAX_KEY_COLUMNS: usize = 32;
/// Bytes of the name of a table, column or index (PostgreSQL's is 63; other databases allow 128).
pub const MAX_NAME_BYTES: usize = 128;
/// Rows of one sealed chunk; row ids are a chunk number and a place in it.
pub const CHUNK_ROWS: usize = 8_192;
/// Rows that one table can hold: row ids are 32 bits.
pub const MAX_TABLE_ROWS: u64 = 1 << 32;

/// Rows from which on the indexes of a table are built side by side.
pub const SIDE_BY_SIDE_ROWS: u64 = 65_536;
/// Indexes that are built side by side at most.
pub const SIDE_BY_SIDE_INDEXES: usize = 8;

/// Bytes of one SQL text.
pub const MAX_SQL_BYTES: usize = 1 << 20;
/// Tokens of one SQL text.
pub const MAX_SQL_TOKENS: usize = 200_000;
/// Depth of nesting that an SQL text may have: parentheses, subqueries, chains of operators.
pub const MAX_SQL_DEPTH: usize = 256;
/// Parts that one statement may have with its WITH queries in place of their names: expressions, columns of tables, and 32
/// for each table and SELECT.
pub const MAX_SQL_PARTS: usize = 200_000;
/// Items of one SELECT list (as in PostgreSQL).
pub const MAX_SELECT_ITEMS: usize = 1_664;
/// Sets of columns that one GROUP BY may group by (as in PostgreSQL).
pub const MAX_GROUPING_SETS: usize = 4_096;
/// Parameters of one statement (PostgreSQL's protocol counts them in 16 bits).
pub const MAX_PARAMETERS: usize = 65_535;
/// Statements of one batch.
pub const MAX_BATCH_STATEMENTS: usize = 10_000;
/// Prepared statements that a node keeps.
pub const STATEMENT_CACHE_ENTRIES: usize = 4_096;
/// Tables that the direct path joins at most; more go to DataFusion.
pub const MAX_DIRECT_JOIN_TABLES: usize = 4;

/// Time that one statement may take, unless configured.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Memory that one statement may take beside the tables, unless configured.
pub const STATEMENT_MEMORY_BYTES: usize = 512 << 20;
/// Rows that one statement may answer, unless configured; more is an error, never a cut.
pub const STATEMENT_ROWS: u64 = 100_000_000;
/// Rows that one statement may write.
pub const STATEMENT_WRITE_ROWS: usize = 10_000_000;

/// Bytes of an HTTP request's body, unless configured.
pub const HTTP_BODY_BYTES: usize = 64 << 20;
/// Bytes of a request's body that is read into rows or statements on the spot; a larger one on a thread that may block.
pub const HTTP_INLINE_BODY_BYTES: usize = 64 << 10;
/// Bytes of a request's body that nobody wants and that is read all the same, so that its connection serves on.
pub const HTTP_UNWANTED_BYTES: usize = 64 << 10;
/// Time for such a body to arrive; the answer waits for it.
pub const HTTP_UNWANTED_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that are read from an HTTP connection at a time.
pub const HTTP_READ_BYTES: usize = 16 << 10;
/// Bytes of what a peer sent in vain that are read from an HTTP connection when it is closed.
pub const HTTP_UNREAD_BYTES: usize = 1 << 20;
/// Bytes of an HTTP request's head.
pub const HTTP_HEAD_BYTES: usize = 64 << 10;
/// Bytes of an HTTP request's path and query string.
pub const HTTP_URI_BYTES: usize = 32 << 10;
/// Time that requests which had arrived are still taken in when the node stops.
pub const HTTP_LAST_CALL: Duration = Duration::from_millis(100);
/// Connections that wait to be accepted; the system may allow fewer (`net.core.somaxconn`).
pub const HTTP_BACKLOG: u32 = 4_096;
/// Bytes of an answer that the system holds unsent: what is more waits here, and is made when there is room.
pub const HTTP_UNSENT_BYTES: u32 = 128 << 10;
/// Time for an HTTP request's head to arrive.
pub const HTTP_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for an HTTP request's body to arrive.
pub const HTTP_BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time that a connection may idle, or that a slow reader may leave an answer unread.
pub const HTTP_IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two looks of a door at its connections: head and idle time-outs are counted in it.
pub const HTTP_TICK: Duration = Duration::from_millis(500);
/// Time between two tries to accept HTTP connections when accepting fails.
pub const HTTP_ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections that one door keeps open.
pub const HTTP_CONNECTIONS: usize = 10_000;
/// Memory that the bodies of all HTTP requests under way may take together.
pub const HTTP_BODIES_BYTES: usize = 1 << 30;
/// Bytes in which that memory is counted; a body of fewer is not.
pub const HTTP_BODY_PERMIT_BYTES: usize = 64 << 10;
/// Names and values of one query string or form: one for every column of the widest table, and some for options.
pub const HTTP_PARAMETERS: usize = MAX_COLUMNS + 64;
/// Batches of rows that may wait between a statement and the connection that sends them.
pub const HTTP_WAITING_BATCHES: usize = 1;
/// Bytes up to which an answer is made whole, with a length; larger ones are streamed.
pub const HTTP_WHOLE_BYTES: usize = 256 << 10;
/// Bytes of one chunk of a streamed answer.
pub const HTTP_CHUNK_BYTES: usize = 64 << 10;
/// Bytes below which an answer is not worth compressing.
pub const HTTP_COMPRESS_BYTES: usize = 1 << 10;
/// Depth of and=(…) and or=(…) in a query string.
pub const REST_FILTER_DEPTH: usize = 32;
/// Depth of a JSON body.
pub const JSON_DEPTH: usize = 64;
/// Time that requests under way are given when the node stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Bytes of the name of a node or a cluster; its length is one byte on the wire.
pub const PEER_NAME_BYTES: usize = 128;
/// Bytes that a cluster secret has at least.
pub const PEER_SECRET_BYTES: usize = 16;
/// Bytes of one message of the handshake between nodes.
pub const PEER_HANDSHAKE_BYTES: usize = 1 << 10;
/// Time for a whole handshake between nodes.
pub const PEER_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to connect to another node, before the handshake.
pub const PEER_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections of a node's door that may be unauthenticated at a time; one more ends the oldest.
pub const PEER_STRANGERS: usize = 64;
/// Refused connections, and ended ones, that a door remembers for status pages.
pub const PEER_GUESTS_REMEMBERED: usize = 16;
/// Bytes of one frame's payload: what a small message waits behind, at most, for each long one that is under way.
pub const PEER_FRAME_BYTES: usize = 64 << 10;
/// Bytes of one message between nodes, in as many frames as it takes: a forwarded HTTP body, and its surroundings.
pub const PEER_MESSAGE_BYTES: usize = HTTP_BODY_BYTES + (1 << 20);
/// Bytes of one message of the urgent lane.
pub const PEER_URGENT_MESSAGE_BYTES: usize = 1 << 20;
/// Bytes of received messages that one connection between nodes may hold.
pub const PEER_CONNECTION_BYTES: usize = 2 * PEER_MESSAGE_BYTES;
/// Bytes of received messages that all connections of one lane may hold together.
pub const PEER_LANE_BYTES: usize = 512 << 20;
/// Calls that may be under way on one connection between nodes.
pub const PEER_IN_FLIGHT: usize = 4_096;
/// Bytes of requests that may wait to be written to one connection between nodes, of those of one frame and of longer ones
/// each; callers wait for room.
pub const PEER_QUEUE_BYTES: usize = 16 << 20;
/// Bytes of answers that may wait to be written to one connection between nodes before no further requests are read from
/// it: so many that one long answer does not keep the others from being asked.
pub const PEER_UNWRITTEN_BYTES: usize = 2 * PEER_MESSAGE_BYTES;
/// Frames without a message (rejections and the like) that may wait before a door reads no further.
pub const PEER_CONTROL_FRAMES: usize = 1_024;
/// Bytes that are handed to a connection between nodes at a time, give or take one frame.
pub const PEER_WRITE_BYTES: usize = 128 << 10;
/// Bytes of a refusal's text.
pub const PEER_REFUSAL_BYTES: usize = 4 << 10;
/// Time between two pings, in both directions of every connection between nodes.
pub const PEER_PING_INTERVAL: Duration = Duration::from_millis(500);
/// Time without a byte after which the other node counts as gone, if nothing comes until the next ping either: a node that
/// was itself held up for so long has not looked yet.
pub const PEER_SILENCE: Duration = Duration::from_secs(3);
/// Time in which a connection between nodes must take at least one byte of what is written to it. Long: a full send buffer
/// of some megabytes at 1 Mbit/s takes ten seconds until the kernel asks for more.
pub const PEER_STALL: Duration = Duration::from_secs(30);
/// Time after which the kernel probes an idle connection between nodes, and between two probes.
pub const PEER_KEEPALIVE: Duration = Duration::from_secs(10);
/// Time until another node is connected to again; it doubles with each failure, and up to half of it is taken off by chance.
pub const PEER_BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// Longest time between two tries to connect to another node.
pub const PEER_BACKOFF_MOST: Duration = Duration::from_secs(1);
/// Time that a connection must have lived for the next one to be tried at once.
pub const PEER_STEADY: Duration = Duration::from_secs(5);
/// Time between two tries to accept connections when accepting fails.
pub const PEER_ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Rows that a load hands on at a time.
pub const LOAD_BATCH_ROWS: usize = 65_536;
/// Bytes after which a batch of a load is handed on, whatever its rows: long before the 2 GiB that text offsets address.
pub const LOAD_BATCH_BYTES: usize = 32 << 20;
/// Batches of a load that may wait between origin and table.
pub const LOAD_QUEUE_BATCHES: usize = 4;
/// Time to connect to an origin.
pub const ORIGIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that an origin is given to say goodbye.
pub const ORIGIN_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that a writer of an SQLite origin is waited for.
pub const ORIGIN_BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an idle connection to an origin is probed, unless its URL says otherwise: a load may wait long for its
/// reader.
pub const ORIGIN_KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Time between two such probes, and how many go unanswered before the origin counts as gone.
pub const ORIGIN_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// See `ORIGIN_KEEPALIVE_INTERVAL`.
pub const ORIGIN_KEEPALIVE_RETRIES: u32 = 3;
/// Rows whose size is measured for an estimate, when there is no other reason to read them all.
pub const ESTIMATE_SAMPLE_ROWS: u64 = 1_000;
/// Bytes that are read from a file at a time.
pub const FILE_READ_BYTES: usize = 256 << 10;
/// Bytes of one line or one value of a file that is loaded.
pub const MAX_FIELD_BYTES: usize = 64 << 20;

/// Writes that may wait for the writer; more are refused until there is room.
pub const WRITE_QUEUE: usize = 1_024;
/// Rows of a write that is applied on the spot; larger ones are applied on a thread that may block.
pub const INLINE_APPLY_ROWS: usize = 1_000;
/// Rows that may be looked at on the spot, for a read or a write; more are looked at on a thread that may block.
pub const INLINE_SCAN_ROWS: u64 = 16_384;
/// Bytes of rows that are looked at on the spot, counted once for each comparison.
pub const INLINE_SCAN_BYTES: u64 = 4 << 20;
/// Bytes of a caller's request id.
pub const REQUEST_ID_BYTES: usize = 128;
/// Answers that are remembered for requests with an id.
pub const REQUEST_IDS: usize = 65_536;
/// Bytes that remembered answers may hold together. Members must agree in it, and in [`REQUEST_IDS`].
pub const REQUEST_ID_OUTCOME_BYTES: usize = 64 << 20;
/// Proposals on their way from which on a write waits for others, to be proposed together with them once one has come back.
pub const PROPOSALS_AHEAD: usize = 2;
/// Proposals that may be on their way at a time, when what waits fills them.
pub const PROPOSALS_IN_FLIGHT: usize = 16;
/// Writes of one proposal.
pub const PROPOSAL_WRITES: usize = 128;
/// Bytes of the writes of one proposal. One that is larger goes alone.
pub const PROPOSAL_BYTES: usize = 256 << 10;
/// Time that a write waits to be agreed on, beside the time that its bytes take; what became of it is not known after that.
pub const WRITE_WAIT: Duration = Duration::from_millis(2_500);
/// Time that writes on their way are given to be agreed on when a node stops.
pub const WRITES_GRACE: Duration = Duration::from_secs(3);
/// Time that a read waits for the token that it shows.
pub const TOKEN_WAIT: Duration = Duration::from_secs(2);

/// Time that a node waits for another process to leave its data folder.
pub const FOLDER_WAIT: Duration = Duration::from_secs(3);
/// Time between two looks whether it has.
pub const FOLDER_RETRY: Duration = Duration::from_millis(20);
/// Time between two signs of life of a group's leader.
pub const HEARTBEAT: Duration = Duration::from_millis(100);
/// How long a member that hears no leader waits, at least and at most, before it stands for election.
pub const ELECTION: (Duration, Duration) = (Duration::from_millis(300), Duration::from_millis(600));
/// How long a member waits for entries to be on another's disk, beside the time that their bytes take.
pub const APPEND_WAIT: Duration = Duration::from_secs(2);
/// Bytes a second that a network between members carries at least.
pub const SLOW_NETWORK_BYTES: usize = 100 << 10;
/// How long so many bytes may take between members, beside a time that is allowed anyhow.
pub fn with_time_for(bytes: usize, anyhow: Duration) -> Duration {
    anyhow.saturating_add(Duration::from_secs((bytes / SLOW_NETWORK_BYTES) as u64))
}

/// How long a member waits for one block of a snapshot to be on another's disk.
pub const SNAPSHOT_PIECE_WAIT: Duration = Duration::from_secs(30);
/// Time that a request which only the leader can serve waits for there to be one.
pub const LEADER_WAIT: Duration = Duration::from_millis(2_500);
/// Time between two looks whether there is, when nothing has been heard.
pub const LEADER_LOOK: Duration = Duration::from_millis(50);
/// Time between two tries to become a member of a group, and between two looks of the leader at who its members are.
pub const MEMBERS_LOOK: Duration = Duration::from_millis(500);
/// Time that another member is given to answer a short question.
pub const MEMBER_WAIT: Duration = Duration::from_secs(2);
/// Time that the leader is given to change who the members are.
pub const MEMBERS_WAIT: Duration = Duration::from_secs(10);
/// Entries that a member may lack of the leader's log to be taken for one that has caught up, and can vote.
pub const CAUGHT_UP_ENTRIES: u64 = 100;
/// Time that a write which was forwarded may take, beside the time that its bytes take.
pub const FORWARDED_WRITE_WAIT: Duration = Duration::from_secs(4);
/// Time that a load which was forwarded may take.
pub const FORWARDED_LOAD_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Depth of nesting of the filter of a write that goes from one member to another.
pub const FORWARDED_FILTER_DEPTH: usize = 64;
/// Longest time that a client may wait for a change of the cluster.
pub const CLUSTER_WAIT: Duration = Duration::from_secs(60);
/// Time between two looks whether the cluster has changed, for a client that waits for it.
pub const CLUSTER_LOOK: Duration = Duration::from_millis(100);
/// Time between two looks of a follower at how far the leader is, so that it can say how old its rows may be.
pub const FRESHNESS_LOOK: Duration = Duration::from_secs(1);

/// Entries of a log after which its state is written out, however short they are.
pub const SNAPSHOT_ENTRIES: u64 = 100_000;
/// Bytes of a log after which its state is written out, when that is not larger.
pub const SNAPSHOT_LOG_BYTES: u64 = 64 << 20;
/// Entries that are kept beside a snapshot, for members that are not far behind.
pub const KEPT_ENTRIES: u64 = 1_000;

/// Time between two looks for rows that have expired or are too many.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Rows that one look removes at a time.
pub const SWEEP_ROWS: usize = 65_536;

/// Tables that are loaded at the same time.
pub const LOADS_AT_ONCE: usize = 4;
/// Calls that may wait for the next load of one table.
pub const LOAD_WAITERS: usize = 1_024;
/// Rows of a refresh's difference that are written at once; a larger one is written as a whole new load.
pub const DIFFERENCE_ROWS: usize = 262_144;
/// Time until a first load that failed is tried again; it doubles with each failure.
pub const LOAD_RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest time between two tries of a first load.
pub const LOAD_RETRY_MOST: Duration = Duration::from_secs(60);

/// Bytes of a configuration file.
pub const CONFIG_BYTES: u64 = 4 << 20;

/// Bytes of one record of a group's log. A write's operations are one.
pub const LOG_RECORD_BYTES: usize = 128 << 20;
/// Bytes of a record that consensus itself may take.
pub const LOG_RECORD_HEAD_BYTES: usize = 1 << 10;
/// Bytes after which a group's log goes on in another file. Whole files are removed when a snapshot has what is in them.
pub const LOG_SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes of a group's log that are read at a time, to be sent to a member that lacks them; a single record may have more.
pub const LOG_READ_BYTES: usize = 4 << 20;
/// Bytes of a snapshot that are written, read and checked at a time.
pub const SNAPSHOT_BLOCK_BYTES: usize = 1 << 20;
/// Bytes of the note that a snapshot begins with.
pub const SNAPSHOT_NOTE_BYTES: usize = 64 << 10;
/// Bytes of a small value that a member keeps beside its log.
pub const REGISTER_BYTES: usize = 64 << 10;

// Relations that the code counts on.
const _: () = assert!(CHUNK_ROWS.is_power_of_two());
const _: () = assert!(LOAD_BATCH_ROWS.is_multiple_of(CHUNK_ROWS));
const _: () = assert!(2 * LOAD_BATCH_BYTES + LOG_RECORD_HEAD_BYTES < LOG_RECORD_BYTES);
const _: () = assert!(MAX_SQL_DEPTH < MAX_SQL_TOKENS);
const _: () = assert!(MAX_KEY_COLUMNS <= MAX_COLUMNS);
const _: () = assert!(HTTP_URI_BYTES < HTTP_HEAD_BYTES);
const _: () = assert!(HTTP_CHUNK_BYTES <= HTTP_WHOLE_BYTES && HTTP_COMPRESS_BYTES <= HTTP_WHOLE_BYTES);
// Hyper refuses a smaller buffer for heads.
const _: () = assert!(HTTP_HEAD_BYTES >= 8_192 && HTTP_READ_BYTES <= HTTP_HEAD_BYTES);
const _: () = assert!(HTTP_UNREAD_BYTES.is_multiple_of(HTTP_READ_BYTES));
const _: () = assert!(HTTP_INLINE_BODY_BYTES <= HTTP_BODY_BYTES && HTTP_UNWANTED_BYTES <= HTTP_BODY_BYTES);
const _: () = assert!(HTTP_BODY_PERMIT_BYTES <= HTTP_BODY_BYTES && HTTP_BODY_BYTES <= HTTP_BODIES_BYTES);
const _: () = assert!(MAX_SQL_BYTES < HTTP_BODY_BYTES);
const _: () = assert!(HTTP_TICK.as_millis() < HTTP_HEAD_TIMEOUT.as_millis());
const _: () = assert!(HTTP_HEAD_TIMEOUT.as_millis() <= HTTP_IDLE_TIMEOUT.as_millis());
// What waits for a body that nobody wants is answered before anybody gives up waiting for it.
const _: () = assert!(HTTP_UNWANTED_TIMEOUT.as_millis() < HTTP_HEAD_TIMEOUT.as_millis());
const _: () = assert!(HTTP_LAST_CALL.as_millis() < SHUTDOWN_GRACE.as_millis());
const _: () = assert!(PEER_NAME_BYTES <= u8::MAX as usize);
// A greeting is three names, two versions, a lane and a nonce.
const _: () = assert!(3 * (PEER_NAME_BYTES + 1) + 64 < PEER_HANDSHAKE_BYTES);
const _: () = assert!(PEER_REFUSAL_BYTES < PEER_FRAME_BYTES && PEER_FRAME_BYTES <= PEER_WRITE_BYTES);
const _: () = assert!(PEER_URGENT_MESSAGE_BYTES <= PEER_MESSAGE_BYTES && PEER_MESSAGE_BYTES <= PEER_CONNECTION_BYTES);
const _: () = assert!(PEER_FRAME_BYTES <= PEER_QUEUE_BYTES && PEER_MESSAGE_BYTES < PEER_UNWRITTEN_BYTES);
const _: () = assert!(PEER_CONNECTION_BYTES <= PEER_LANE_BYTES && PEER_MESSAGE_BYTES <= u32::MAX as usize);
// A node that is gone is noticed in under five seconds, and one that is there is never thought gone for one lost ping.
const _: () = assert!(PEER_SILENCE.as_millis() + 2 * PEER_PING_INTERVAL.as_millis() < 5_000);
const _: () = assert!(PEER_PING_INTERVAL.as_millis() * 3 < PEER_SILENCE.as_millis());
