//! What a door serves: services by number, each of which answers calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::identity::NodeName;
use crate::wire::{FIRST_RESERVED_CODE, Lane};

/// One call of another node, whose name has been proven.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who calls.
    pub from: NodeName,
    /// The lane that it came on.
    pub lane: Lane,
    /// Version that both nodes speak.
    pub version: u16,
    /// The service that is called.
    pub service: u16,
    /// What is asked, in the service's own form.
    pub payload: Bytes,
    /// When the caller gives up, as far as clocks that count alike can tell.
    pub deadline: Instant,
}

/// A service's refusal, or its own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The service's own code, below [`FIRST_RESERVED_CODE`]; a higher one reaches the caller as the highest below it.
    pub code: u16,
    /// What a person reads; cut at [`cachesql_types::limits::PEER_REFUSAL_BYTES`].
    pub message: String,
}

impl Refusal {
    /// A refusal with a code below [`FIRST_RESERVED_CODE`].
    pub fn new(code: u16, message: impl Into<String>) -> Refusal {
        Refusal { code: code.min(FIRST_RESERVED_CODE - 1), message: message.into() }
    }
}

/// Answers calls. When the caller leaves, or the connection ends, the future is dropped where it waits.
#[async_trait::async_trait]
pub trait Service: Send + Sync + 'static {
    /// Answers one call. Calls of one connection run side by side.
    async fn serve(&self, call: Call) -> Result<Bytes, Refusal>;
}

/// The services of a door, by number.
#[derive(Clone, Default)]
pub struct Services(BTreeMap<u16, Arc<dyn Service>>);

impl Services {
    /// No services.
    pub fn new() -> Services {
        Services::default()
    }

    /// Adds a service, in the place of one of the same number.
    #[must_use]
    pub fn with(mut self, number: u16, service: impl Service) -> Services {
        self.0.insert(number, Arc::new(service));
        self
    }

    pub(crate) fn get(&self, number: u16) -> Option<Arc<dyn Service>> {
        self.0.get(&number).cloned()
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}
