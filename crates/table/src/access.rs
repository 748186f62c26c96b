//! When rows were last used, and which of them have to go for it.
//!
//! Applying operations reads no clock, so a row that was just written has no time of use yet. Whoever asks next for expired
//! rows dates it: from then on it has its full time to live. A row so lives at least as long as it should, and at most
//! one sweep longer.

use crate::row::{RowId, RowKey};
use crate::table::Table;

impl Table {
    /// Whether `touch` notes anything.
    pub fn notes_reads(&self) -> bool {
        self.rows.keeps_access()
    }

    /// Notes that a row was read at a time of the caller's clock, in milliseconds. Only kept when the table has a ttl or
    /// a limit of rows; all snapshots of the table share it.
    pub fn touch(&self, id: RowId, now_ms: u64) {
        if let Some(access) = self.rows.access(id) {
            access.touch(id.offset(), now_ms);
        }
    }

    /// Keys of the rows that were neither read nor written within the ttl, in storage order. Rows that have no time yet get this one.
    pub fn expired(&self, now_ms: u64) -> Vec<RowKey> {
        let Some(ttl_ms) = self.retention.ttl_ms else { return Vec::new() };
        let is_expired = |id: &RowId| {
            let Some(access) = self.rows.access(*id) else { return false };
            match access.get(id.offset()) {
                0 => {
                    access.touch(id.offset(), now_ms);
                    false
                }
                used => now_ms.saturating_sub(used) >= ttl_ms,
            }
        };
        self.rows.iter().filter(is_expired).filter_map(|id| self.row_key(id)).collect()
    }

    fn date_new_rows(&self, now_ms: u64) {
        for id in self.rows.iter() {
            if let Some(access) = self.rows.access(id)
                && access.get(id.offset()) == 0
            {
                access.touch(id.offset(), now_ms);
            }
        }
    }

    /// Keys of the least recently used rows beyond the limit, the longest unused first. Rows that have no time yet get this
    /// one; among rows of one time the earlier in storage order go first.
    pub fn over_limit(&self, now_ms: u64) -> Vec<RowKey> {
        let Some(max_rows) = self.retention.max_rows else { return Vec::new() };
        self.date_new_rows(now_ms);
        let excess = usize::try_from(self.row_count().saturating_sub(max_rows)).unwrap_or(usize::MAX);
        if excess == 0 {
            return Vec::new();
        }
        let used = |id: RowId| self.rows.access(id).map_or(0, |access| access.get(id.offset()));
        let mut rows: Vec<(u64, usize, RowId)> =
            self.rows.iter().enumerate().map(|(place, id)| (used(id), place, id)).collect();
        if excess < rows.len() {
            rows.select_nth_unstable(excess);
            rows.truncate(excess);
        }
        rows.sort_unstable();
        rows.into_iter().filter_map(|(_, _, id)| self.row_key(id)).collect()
    }
}
