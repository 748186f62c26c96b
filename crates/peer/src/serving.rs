//! The called side of one connection: requests are put together, each is served by a task of its own, and its answer is
//! queued when it is there, whatever came before.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use cachesql_types::limits;
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::directory::Directory;
use crate::error::Ended;
use crate::frame::{Frame, FrameError};
use crate::handshake::Agreed;
use crate::message::{Incoming, Progress, Reservation, Room, longest_message};
use crate::outbox::Outbox;
use crate::pipe::FrameHandler;
use crate::service::{Call, Refusal, Service, Services};
use crate::wire::{CODE_ANSWER_TOO_LONG, CODE_PANICKED, FIRST_RESERVED_CODE, Kind, Rejection};

/// Messages that may be begun and not completed, those that are not kept included.
const OPEN_MESSAGES: usize = 2 * limits::PEER_IN_FLIGHT;

/// Calls that services are at work on, by id.
type Running = Arc<Mutex<BTreeMap<u64, AbortHandle>>>;

/// A request of which parts are missing.
struct Open {
    /// What it asks; nothing, if it was rejected.
    asks: Option<Asks>,
    message: Incoming,
}

/// What a request says beside its payload.
struct Asks {
    number: u16,
    service: Arc<dyn Service>,
    deadline: Instant,
}

/// Takes in what the dialer sends.
pub(crate) struct Serving {
    agreed: Agreed,
    services: Services,
    directory: Directory,
    outbox: Arc<Outbox>,
    room: Room,
    last_id: u64,
    open: BTreeMap<u64, Open>,
    running: Running,
    heard_goodbye: bool,
}

impl Serving {
    pub(crate) fn new(
        agreed: Agreed,
        services: Services,
        directory: Directory,
        outbox: Arc<Outbox>,
        room: Room,
    ) -> Serving {
        let (open, running) = (BTreeMap::new(), Running::default());
        Serving { agreed, services, directory, outbox, room, last_id: 0, open, running, heard_goodbye: false }
    }

    fn request(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let id = frame.id;
        if id <= self.last_id {
            return Err(FrameError::IdUsedTwice { id, last: self.last_id });
        }
        if self.heard_goodbye {
            return Err(FrameError::AfterGoodbye { id });
        }
        self.last_id = id;
        let cut = |_| frame.malformed("its head is cut");
        let mut part = frame.payload;
        let number = part.try_get_u16().map_err(cut)?;
        let left = Duration::from_millis(part.try_get_u32().map_err(cut)?.into());
        let total = usize::try_from(part.try_get_u32().map_err(cut)?).unwrap_or(usize::MAX);
        let most = longest_message(self.agreed.lane);
        if total > most {
            return Err(FrameError::TooLong { bytes: total, most });
        }
        if part.len() > total {
            return Err(frame.malformed("it is longer than it says"));
        }
        if part.len() < total && self.open.len() >= OPEN_MESSAGES {
            return Err(FrameError::TooManyOpen { most: OPEN_MESSAGES });
        }
        match self.admit(number, total) {
            Ok((service, reservation)) => {
                self.outbox.owe();
                let asks = Asks { number, service, deadline: Instant::now() + left };
                if part.len() == total {
                    self.start(id, asks, Bytes::copy_from_slice(part), reservation);
                } else {
                    let message = Incoming::assemble(total, part, reservation);
                    self.open.insert(id, Open { asks: Some(asks), message });
                }
            }
            Err(rejection) => {
                self.outbox.reject(id, rejection);
                if part.len() < total {
                    let message = Incoming::Discarding { left: total - part.len() };
                    self.open.insert(id, Open { asks: None, message });
                }
            }
        }
        Ok(())
    }

    fn admit(&self, number: u16, total: usize) -> Result<(Arc<dyn Service>, Reservation), Rejection> {
        if self.outbox.said_goodbye() {
            return Err(Rejection::Leaving);
        }
        let service = self.services.get(number).ok_or(Rejection::NoService)?;
        if self.open.len() + self.running.lock().len() >= limits::PEER_IN_FLIGHT {
            return Err(Rejection::Busy);
        }
        let reservation = self.room.reserve(total).ok_or(Rejection::Busy)?;
        Ok((service, reservation))
    }

    fn more(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let id = frame.id;
        let Open { asks, message } = self.open.remove(&id).ok_or(FrameError::ContinuationOfNothing { id })?;
        let (progress, rest) = message.add(frame.payload).ok_or(frame.malformed("more than is missing, or nothing"))?;
        if let Some(message) = rest {
            self.open.insert(id, Open { asks, message });
        } else if let (Progress::Whole(payload, reservation), Some(asks)) = (progress, asks) {
            self.start(id, asks, payload, reservation);
        }
        Ok(())
    }

    fn cancel(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let id = frame.id;
        if !frame.payload.is_empty() {
            return Err(frame.malformed("it has a payload"));
        }
        if id > self.last_id {
            return Err(FrameError::CancelOfNothing { id });
        }
        if let Some(open) = self.open.remove(&id) {
            // One that was rejected has ended already.
            if open.asks.is_some() {
                self.outbox.cancelled(id);
            }
        } else if let Some(task) = self.running.lock().remove(&id) {
            task.abort();
            self.outbox.cancelled(id);
        } else {
            self.outbox.withdraw(id);
        }
        Ok(())
    }

    fn start(&self, id: u64, asks: Asks, payload: Bytes, reservation: Reservation) {
        let Asks { number, service, deadline } = asks;
        let Agreed { dialer, lane, version } = self.agreed.clone();
        let call = Call { from: dialer, lane, version, service: number, payload, deadline };
        let (outbox, running) = (Arc::clone(&self.outbox), Arc::clone(&self.running));
        // Held until the task is noted, so that it cannot end before.
        let mut tasks = self.running.lock();
        let task = tokio::spawn(async move {
            let _reservation = reservation;
            let served = AssertUnwindSafe(async { service.serve(call).await }).catch_unwind().await;
            // Who takes the task out of the list answers: this, or the one that cancels it.
            if running.lock().remove(&id).is_none() {
                return;
            }
            match served {
                Ok(Ok(answer)) if answer.len() > longest_message(lane) => {
                    let message = format!("the answer has {} bytes, more than a message may have", answer.len());
                    outbox.refuse(id, CODE_ANSWER_TOO_LONG, &message);
                }
                Ok(Ok(answer)) => outbox.answer(id, answer),
                Ok(Err(Refusal { code, message })) => outbox.refuse(id, code.min(FIRST_RESERVED_CODE - 1), &message),
                Err(_) => {
                    tracing::error!(service = number, "peers: a service panicked");
                    outbox.refuse(id, CODE_PANICKED, "the service panicked");
                }
            }
        });
        tasks.insert(id, task.abort_handle());
    }
}

impl FrameHandler for Serving {
    const PAUSES: bool = true;

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        match frame.kind {
            Kind::Request => self.request(frame),
            Kind::Continue => self.more(frame),
            Kind::Cancel => self.cancel(frame),
            Kind::Goodbye => {
                self.heard_goodbye = true;
                self.outbox.settle();
                Ok(())
            }
            Kind::Answer | Kind::Refusal | Kind::Rejected | Kind::Cancelled | Kind::Ping | Kind::Pong => {
                Err(FrameError::WrongSide { kind: frame.kind.number() })
            }
        }
    }

    fn tick(&mut self) -> Result<(), Ended> {
        if self.directory.contains(&self.agreed.dialer) { Ok(()) } else { Err(Ended::Moved) }
    }
}

/// Nobody waits for the answers any more.
impl Drop for Serving {
    fn drop(&mut self) {
        for task in std::mem::take(&mut *self.running.lock()).into_values() {
            task.abort();
        }
    }
}
