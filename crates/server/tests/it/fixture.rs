//! A node with a table of people behind an open door, and a client that hides nothing of HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cachesql_node::{FileFormat, FileSource, Node, NodeConfig, RequestOptions, Statement, TableConfig, TableSource};
use cachesql_server::{HttpConfig, HttpDoor};
use cachesql_types::DataType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything here takes, so that what hangs fails instead.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The table that most tests ask.
const PEOPLE: [&str; 6] = [
    "CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT, age INTEGER, ok BOOLEAN, price DECIMAL(20,2), born TIMESTAMP, doc JSON)",
    "CREATE INDEX age ON people (age)",
    "CREATE INDEX \"name+age\" ON people (name, age)",
    "INSERT INTO people VALUES (1, '张三', 30, true, 1.50, TIMESTAMP '1969-12-31 23:59:59', '{\"a\":[1,2]}'), \
     (2, 'say \"hi\"', 40, false, 123456789012345678.90, NULL, NULL), (3, '', NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO people VALUES (4, NULL, 40, true, 0.00, TIMESTAMP '2026-11-29 20:31:32.5', NULL)",
    "INSERT INTO people VALUES (9007199254740993, 'a,b', -1, false, -0.05, NULL, '\"text\"')",
];

/// A table of a CSV file in a folder of its own.
fn loaded_table() -> (tempfile::TempDir, TableConfig) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("loaded.csv");
    std::fs::write(&path, "ID,CODE\n1,007\n2,\n3,\"\"\n").expect("write the file");
    let format = FileFormat::of_path(&path).expect("CSV");
    let mut table = TableConfig::new("loaded", TableSource::File(FileSource { path, format }));
    table.key = vec!["ID".into()];
    table.indexes = vec![vec!["CODE".into()]];
    table.types = vec![("ID".into(), DataType::BigInt), ("CODE".into(), DataType::Text)];
    (folder, table)
}

/// A running door.
pub struct Server {
    pub address: SocketAddr,
    pub node: Arc<Node>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    /// Where the file of table `loaded` is.
    pub folder: tempfile::TempDir,
}

impl Server {
    /// A door on loopback with everything as it is by default.
    pub async fn start() -> Server {
        Server::start_with(|_| {}).await
    }

    /// The same with changes to the door's configuration.
    pub async fn start_with(change: impl FnOnce(&mut HttpConfig)) -> Server {
        let (folder, table) = loaded_table();
        let config = NodeConfig { tables: vec![table], ..NodeConfig::new(1 << 30) };
        let node = Node::start(config).await.expect("a configuration that starts");
        tokio::time::timeout(PATIENCE, node.wait_ready()).await.expect("loaded in time");
        for sql in PEOPLE {
            node.sql(Statement::new(sql), &RequestOptions::default()).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        Server::open(folder, node, change).await
    }

    /// A door before a node whose one table cannot be loaded.
    pub async fn start_unloaded() -> Server {
        let (folder, table) = loaded_table();
        std::fs::remove_file(folder.path().join("loaded.csv")).expect("remove the file");
        let config = NodeConfig { tables: vec![table], ..NodeConfig::new(1 << 30) };
        let node = Node::start(config).await.expect("a configuration that starts");
        Server::open(folder, node, |_| {}).await
    }

    async fn open(folder: tempfile::TempDir, node: Arc<Node>, change: impl FnOnce(&mut HttpConfig)) -> Server {
        let mut config = HttpConfig::new("127.0.0.1:0");
        change(&mut config);
        let door = HttpDoor::bind(config).await.expect("a free port");
        let address = door.local_address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(door.serve(node.clone(), async move {
            let _ = stopped.await;
        }));
        Server { address, node, stop: Some(stop), served, folder }
    }

    /// Tells the door to close.
    pub fn begin_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until the door is closed.
    pub async fn stopped(self) {
        tokio::time::timeout(PATIENCE, self.served).await.expect("stopped in time").expect("no panic");
    }

    /// A connection.
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("connect")
    }

    /// Sends bytes and reads until the other side closes.
    pub async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        // The other side may close before it has read all.
        let _ = stream.write_all(bytes).await;
        read_to_end(&mut stream).await
    }

    /// Sends a request on a connection of its own.
    pub async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body);
        Reply::parse(&self.raw(request.as_bytes()).await)
    }

    /// GET without headers.
    pub async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, &[], "").await
    }

    /// POST of a form.
    pub async fn form(&self, target: &str, form: &str) -> Reply {
        self.ask("POST", target, &[("Content-Type", "application/x-www-form-urlencoded")], form).await
    }
}

/// Reads until the other side closes.
pub async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("closed in time");
    // A reset ends the connection as well as a close.
    let _ = read;
    bytes
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the body is as long as its head or its last chunk says.
    pub complete: bool,
}

impl Reply {
    /// Reads one answer.
    pub fn parse(bytes: &[u8]) -> Reply {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no head in {:?}", String::from_utf8_lossy(bytes));
        });
        let head = std::str::from_utf8(&bytes[..end]).expect("ASCII head");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse().ok()).expect("status line");
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").expect("a header"))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let mut reply = Reply { status, headers, body: rest.to_vec(), complete: true };
        if reply.header("transfer-encoding") == Some("chunked") {
            (reply.body, reply.complete) = joined(rest);
        } else if let Some(length) = reply.header("content-length") {
            reply.complete = length.parse() == Ok(rest.len());
        }
        reply
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The `code` of a failure.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Joins chunks; whether the last one was there.
fn joined(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|w| w == b"\r\n") else { return (body, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).expect("ASCII"), 16).expect("hex");
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..rest.len().min(size)]);
            return (body, false);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}
