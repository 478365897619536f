//! What other backends draw by chance, derived from the seed of the run.

use sha2::{Digest as _, Sha256};

/// JSON-RPC ids of the firmware are C ints.
const MAX_ID: i64 = i32::MAX as i64;

/// 32 bytes that depend on the seed, on what they are for, and on a count.
pub(super) fn draw(seed: u64, purpose: &str, k: u64) -> [u8; 32] {
    let digest = Sha256::new().chain_update(seed.to_be_bytes()).chain_update(k.to_be_bytes());
    digest.chain_update(purpose).finalize().into()
}

/// The first request id of a run. A board that outlives a run may still answer its requests, so
/// each run begins elsewhere.
pub(super) fn first_id(seed: u64) -> i64 {
    let [a, b, c, d, ..] = draw(seed, "request id", 0);
    i64::from(u32::from_be_bytes([a, b, c, d])) % MAX_ID + 1
}

/// The id after `id`, from 1 to 2^31-1.
pub(super) fn next_id(id: i64) -> i64 {
    id % MAX_ID + 1
}

/// The first bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_within_what_the_firmware_returns_unchanged() {
        for seed in 0..100 {
            assert!((1..=MAX_ID).contains(&first_id(seed)));
        }
        assert_eq!((next_id(1), next_id(MAX_ID - 1), next_id(MAX_ID)), (2, MAX_ID, 1));
        assert_ne!(first_id(1), first_id(2));
    }
}
