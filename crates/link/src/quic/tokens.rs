//! Address validation tokens that were used at a server's port: each validates its client's address once, so
//! that an attacker who overhears one cannot make the port send to another host (RFC 9000, section 8.1.4).
//! Exact and bounded: beyond the limit further tokens are rejected, which costs their client a round trip.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quinn::{TokenLog, TokenReuseError};

/// Lifetime of a token.
pub(super) const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Tokens sent on one connection: one for the next connection, and one for a parallel one.
pub(super) const TOKENS_SENT: u32 = 2;
/// Most used tokens remembered per expiry period; there are two periods at a time.
const MAX_USED: usize = 32_768;

/// Record of used tokens.
#[derive(Default)]
pub(super) struct UsedTokens(Mutex<Used>);

#[derive(Default)]
struct Used {
    /// Expiry period of the tokens that are issued now.
    newest: u64,
    ending_then: HashSet<u128>,
    ending_before: HashSet<u128>,
}

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        lifetime: Duration,
    ) -> Result<(), TokenReuseError> {
        let since = issued.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ends = (since + lifetime).as_secs() / lifetime.as_secs().max(1);
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ends > used.newest {
            let last = std::mem::take(&mut used.ending_then);
            used.ending_before = if ends == used.newest + 1 { last } else { HashSet::new() };
            used.newest = ends;
        }
        let ending = match used.newest - ends {
            0 => &mut used.ending_then,
            1 => &mut used.ending_before,
            _ => return Err(TokenReuseError),
        };
        let is_new = ending.len() < MAX_USED && ending.insert(nonce);
        if is_new { Ok(()) } else { Err(TokenReuseError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn uses(used: &UsedTokens, nonce: u128, hours: u32) -> bool {
        let issued = SystemTime::UNIX_EPOCH + 1_000 * TOKEN_LIFETIME + hours * HOUR;
        used.check_and_insert(nonce, issued, TOKEN_LIFETIME).is_ok()
    }

    #[test]
    fn a_token_counts_once_for_as_long_as_it_is_good() {
        let used = UsedTokens::default();
        assert!(uses(&used, 1, 0) && uses(&used, 2, 0) && !uses(&used, 1, 0));
        assert!(uses(&used, 3, 25), "the next day");
        assert!(!uses(&used, 1, 0) && uses(&used, 4, 0), "issued before, and still good");
        assert!(uses(&used, 5, 49) && !uses(&used, 3, 25));
        assert!(!uses(&used, 6, 0), "of a day that is forgotten");
        assert!(uses(&used, 7, 500) && !uses(&used, 5, 49));
    }

    #[test]
    fn more_than_can_be_kept_prove_nothing() {
        let used = UsedTokens::default();
        let taken = (0..MAX_USED as u128 + 10).filter(|&nonce| uses(&used, nonce, 0)).count();
        assert_eq!(taken, MAX_USED);
        assert!(uses(&used, 0, 24));
    }
}
