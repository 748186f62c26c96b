//! What is wrong with a history, if anything is. Each check is a plain function, and is tested with histories that are wrong.

mod equal;
mod linearizable;
mod lost;
mod once;
mod sessions;
#[cfg(test)]
mod testing;

pub use equal::{MemberRows, unequal};
pub use linearizable::not_linearizable;
pub use lost::lost_writes;
pub use once::not_once;
pub use sessions::not_monotonic;
