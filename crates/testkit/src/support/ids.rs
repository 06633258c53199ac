//! Sequential ids in the form of random UUIDs.

use std::sync::atomic::{AtomicU64, Ordering};

use haft_types::IdSource;
use uuid::Uuid;

/// A source of ids for tests: `00000001-0000-4000-8000-000000000001`, `00000002-…`. The first eight
/// digits contain the number, so that short ids are unique.
#[derive(Debug)]
pub struct SequentialIds {
    next: AtomicU64,
}

impl Default for SequentialIds {
    fn default() -> Self {
        Self::starting_at(1)
    }
}

impl SequentialIds {
    /// Creates ids that start at `first`, for example for a second run on one store.
    pub fn starting_at(first: u64) -> Self {
        Self {
            next: AtomicU64::new(first),
        }
    }
}

impl IdSource for SequentialIds {
    fn new_uuid(&self) -> Uuid {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&(number as u32).to_be_bytes());
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_a_random_id_and_counts() {
        let ids = SequentialIds::default();
        assert_eq!(
            ids.new_uuid().to_string(),
            "00000001-0000-4000-8000-000000000001"
        );
        let second = ids.new_message_id();
        assert_eq!(second.short_id().to_string(), "00000002");
        assert_eq!(second.0.get_version_num(), 4);
    }
}
