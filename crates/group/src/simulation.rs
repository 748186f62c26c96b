//! Bugs that the simulator plants, one in a process, to show that it would find them. Only builds with the feature `simulation`, which
//! nothing that ships has on, have this.

use std::sync::atomic::{AtomicU8, Ordering};

/// A bug to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// Entries count as kept before they are on disk.
    AcknowledgedBeforeSync = 1,
    /// Who leads takes itself for the leader without asking a majority, before it answers linearizable reads.
    LinearizableWithoutMajority = 2,
    /// A member that sent a write on answers before it shows it itself.
    ForwardedBeforeApplied = 3,
    /// An entry is applied although it was planned after another one.
    AfterNotChecked = 4,
    /// A snapshot brings rows, and no requests that have an id.
    RequestIdsForgotten = 5,
}

impl PlantedBug {
    /// All of them.
    pub const ALL: [PlantedBug; 5] = [
        PlantedBug::AcknowledgedBeforeSync,
        PlantedBug::LinearizableWithoutMajority,
        PlantedBug::ForwardedBeforeApplied,
        PlantedBug::AfterNotChecked,
        PlantedBug::RequestIdsForgotten,
    ];

    /// Plants it in this process, in place of any other.
    pub fn plant(self) {
        PLANTED.store(self as u8, Ordering::Relaxed);
    }

    /// Whether it is planted.
    pub fn is_planted(self) -> bool {
        PLANTED.load(Ordering::Relaxed) == self as u8
    }
}

static PLANTED: AtomicU8 = AtomicU8::new(0);
