//! What the door counts, for `/metrics`.

use cachesql_node::ShardedCounter;
use hyper::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The door's counters; the hot ones are handles, so that counting is one addition.
pub(crate) struct Counters {
    registry: Registry,
    rest: ShardedCounter,
    original: ShardedCounter,
    other: ShardedCounter,
    succeeded: ShardedCounter,
    refused: ShardedCounter,
    failed: ShardedCounter,
    connections: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Interface {
    interface: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Class {
    class: &'static str,
}

/// An open connection, counted until it is dropped.
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Counters {
    /// Counters at zero.
    pub(crate) fn new() -> Counters {
        let mut registry = Registry::default();
        let requests = Family::<Interface, ShardedCounter>::default();
        registry.register("cachesql_http_requests", "Requests by the interface that they were for", requests.clone());
        let answers = Family::<Class, ShardedCounter>::default();
        registry.register("cachesql_http_answers", "Answers by class of status", answers.clone());
        let connections = Gauge::default();
        registry.register("cachesql_http_connections", "Open connections", connections.clone());
        let interface = |interface| requests.get_or_create(&Interface { interface }).clone();
        let class = |class| answers.get_or_create(&Class { class }).clone();
        Counters {
            rest: interface("rest"),
            original: interface("original"),
            other: interface("other"),
            succeeded: class("2xx"),
            refused: class("4xx"),
            failed: class("5xx"),
            connections,
            registry,
        }
    }

    /// A request for `/rest`.
    pub(crate) fn rest(&self) {
        self.rest.inc();
    }

    /// A request for `/cache`.
    pub(crate) fn original(&self) {
        self.original.inc();
    }

    /// Any other request.
    pub(crate) fn other(&self) {
        self.other.inc();
    }

    /// An answer was made.
    pub(crate) fn answered(&self, status: StatusCode) {
        if status.is_server_error() {
            self.failed.inc();
        } else if status.is_client_error() {
            self.refused.inc();
        } else {
            self.succeeded.inc();
        }
    }

    /// A connection was accepted.
    pub(crate) fn connection(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }

    /// Appends all of them in the OpenMetrics text format, with its `# EOF`.
    pub(crate) fn write(&self, out: &mut String) {
        // Writing to a String does not fail.
        if let Err(error) = encode(out, &self.registry) {
            tracing::error!(%error, "counters could not be written");
        }
    }
}
