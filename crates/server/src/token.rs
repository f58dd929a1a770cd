//! Tokens, which authorize clients: random text from the operating system, compared in constant time.

use std::fmt;
use std::sync::Arc;

use array::{Error, ErrorKind, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use client::random::random_bytes;
use wire::ops;

use crate::guests::{GuestRole, Guests};

/// Number of random bytes in a new token.
const RANDOM_BYTES: usize = 24;
/// Maximum length of a token in the wire protocol, in bytes.
const MAX_BYTES: usize = 512;
/// Maximum number of sites whose pages may read.
const MAX_SITES: usize = 64;

/// A secret text that does not identify its owner. [`Admission`] defines the rights it gives.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Generates a token with 192 random bits.
    ///
    /// # Errors
    /// `Io` if the system has no source of randomness.
    pub fn random() -> Result<Self> {
        let bytes: [u8; RANDOM_BYTES] = random_bytes()?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Creates a token from a user's text.
    ///
    /// # Errors
    /// `Invalid` if it is empty, longer than the wire protocol allows, or contains characters that a header cannot
    /// hold.
    pub fn chosen(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > MAX_BYTES || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::invalid(format!(
                "expected a token of 1 to {MAX_BYTES} printable ASCII characters without spaces"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the secret itself.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Returns whether `offered` is the same, in a time that depends only on the length of `offered`.
    #[must_use]
    pub fn matches(&self, offered: &str) -> bool {
        let own = self.0.as_bytes();
        let mut difference = own.len() ^ offered.len();
        for (i, byte) in offered.bytes().take(MAX_BYTES).enumerate() {
            difference |= usize::from(byte ^ own[i % own.len()]);
        }
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for Token {
    /// Never the secret: debug output reaches logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Rule that decides which clients are admitted, and with which rights.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Clients that present this token.
    Token(Token),
    /// Clients that present this token; clients that present the readers' token may only read Zarr over HTTP.
    TokenAndReaders(Token, ZarrReaders),
    /// Clients that present this token; clients that present a guest's token may only take part in the session.
    TokenAndGuests(Token, Arc<Guests>),
    /// All clients that can reach the port; has to be chosen explicitly.
    Everybody,
}

/// Operations that guests may request: those of the viewer's page, without ones that change something for others.
const OPERATIONS_OF_GUESTS: [&str; 8] =
    [ops::LIST, ops::DESCRIBE, ops::STATS, ops::JOIN, ops::SERVERS, ops::PATH, ops::PICK, ops::MEASURE];

/// Rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// All operations of the server.
    Everything,
    /// Reading Zarr over HTTP.
    ReadZarr,
    /// Taking part in the session, and measuring what it shows, without reading arrays.
    Guest(GuestRole),
}

impl Right {
    /// Checks that a client with this right may request an operation.
    ///
    /// # Errors
    /// `Denied` for all but the operations of guests.
    pub(crate) fn check_operation(self, name: &str) -> Result<()> {
        match self {
            Self::Everything => Ok(()),
            Self::Guest(_) if OPERATIONS_OF_GUESTS.contains(&name) => Ok(()),
            Self::Guest(_) => Err(denied("the link of a guest allows taking part in the session only")),
            Self::ReadZarr => Err(denied(ZARR_ONLY)),
        }
    }
}

/// Message to clients with the token for Zarr.
const ZARR_ONLY: &str = "this token allows reading Zarr over HTTP only";

impl Admission {
    /// Returns the rights of a client of the wire protocol.
    ///
    /// # Errors
    /// `Denied`, stating whether a token was missing, wrong, or gives fewer rights; never the right token.
    pub fn check(&self, offered: &str) -> Result<Right> {
        match self.right(offered)? {
            Right::ReadZarr => Err(denied(ZARR_ONLY)),
            right => Ok(right),
        }
    }

    /// Returns the rights that the offered token gives.
    ///
    /// # Errors
    /// `Denied`, stating whether a token was missing or wrong, never the right token.
    pub fn right(&self, offered: &str) -> Result<Right> {
        let matches = |token: Option<&Token>| token.is_some_and(|token| token.matches(offered));
        // All comparisons are always made.
        let (is_full, is_reader) = (matches(self.token()), matches(self.readers().map(|r| &r.token)));
        let guest = self.guests().and_then(|guests| guests.role(offered));
        if let Some(role) = guest.filter(|_| !is_full) {
            return Ok(Right::Guest(role));
        }
        match self {
            Self::Everybody => Ok(Right::Everything),
            _ if is_full => Ok(Right::Everything),
            _ if is_reader => Ok(Right::ReadZarr),
            _ if offered.is_empty() => {
                Err(denied("this server requires a token; use the complete URL that it printed"))
            }
            _ => Err(denied("the token is not the one of this server")),
        }
    }

    /// Returns the token to print in links, if there is one.
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Token(token) | Self::TokenAndReaders(token, _) | Self::TokenAndGuests(token, _) => {
                Some(token)
            }
            Self::Everybody => None,
        }
    }

    /// Returns the readers, who may only read Zarr, if there are any.
    #[must_use]
    pub fn readers(&self) -> Option<&ZarrReaders> {
        match self {
            Self::TokenAndReaders(_, readers) => Some(readers),
            Self::Token(_) | Self::TokenAndGuests(..) | Self::Everybody => None,
        }
    }

    /// Returns the guests of the session, if there may be any.
    #[must_use]
    pub fn guests(&self) -> Option<&Arc<Guests>> {
        match self {
            Self::TokenAndGuests(_, guests) => Some(guests),
            Self::Token(_) | Self::TokenAndReaders(..) | Self::Everybody => None,
        }
    }
}

fn denied(why: &str) -> Error {
    Error::new(ErrorKind::Denied, why)
}

/// Programs, and pages of some sites, that may read Zarr over HTTP with a token of their own.
#[derive(Clone, Debug)]
pub struct ZarrReaders {
    /// Token that they present.
    pub token: Token,
    /// Origins of pages, `https://viewer.example`; `*` for all.
    origins: Vec<String>,
}

impl ZarrReaders {
    /// Creates readers with this token; pages only of these origins.
    ///
    /// # Errors
    /// `Invalid` for too many origins, or a malformed one.
    pub fn new(token: Token, origins: &[String]) -> Result<Self> {
        if origins.len() > MAX_SITES {
            let found = origins.len();
            return Err(Error::invalid(format!(
                "expected at most {MAX_SITES} origins of pages, found {found}"
            )));
        }
        if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
            return Err(Error::invalid(format!(
                "expected the origin of pages such as `https://viewer.example` or `http://localhost:8080`, or `*` for all, \
                 found `{wrong}`"
            )));
        }
        Ok(Self { token, origins: origins.to_vec() })
    }

    /// Returns the allowed origin to send to a browser, if the page's origin is allowed.
    #[must_use]
    pub(crate) fn page<'a>(&self, origin: &'a str) -> Option<&'a str> {
        match self.origins.iter().any(|known| known == "*") {
            true => Some("*"),
            false => self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)).then_some(origin),
        }
    }
}

/// Returns whether a text is an origin: scheme, host and optional port, without a path.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_host = |host: &str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    text == "*" || host.is_some_and(|host| !host.is_empty() && is_host(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests::Guest;

    #[test]
    fn random_tokens_are_long_and_differ() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(a.secret().len(), 32);
        assert_ne!(a.secret(), b.secret());
        assert!(Token::chosen(a.secret()).is_ok());
    }

    #[test]
    fn only_the_same_token_matches() {
        let token = Token::chosen("abc").unwrap();
        assert!(token.matches("abc"));
        for other in ["", "ab", "abcabc", "abd", "abcd", "ABC"] {
            assert!(!token.matches(other), "{other}");
        }
    }

    #[test]
    fn a_refusal_does_not_contain_the_secret() {
        let admission = Admission::Token(Token::chosen("s3cret").unwrap());
        assert!(admission.check("s3cret").is_ok());
        for offered in ["", "wrong"] {
            let error = admission.check(offered).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            assert!(!error.to_string().contains("s3cret"));
        }
        assert!(!format!("{admission:?}").contains("s3cret"));
    }

    #[test]
    fn a_token_for_zarr_gives_no_other_right() {
        let token = |text| Token::chosen(text).unwrap();
        let readers = ZarrReaders::new(token("read"), &["https://viewer.example".into()]).unwrap();
        let admission = Admission::TokenAndReaders(token("all"), readers);
        assert_eq!(admission.right("all").unwrap(), Right::Everything);
        assert_eq!(admission.right("read").unwrap(), Right::ReadZarr);
        assert!(admission.check("all").is_ok());
        assert!(admission.check("read").unwrap_err().to_string().contains("Zarr over HTTP only"));
        assert!(admission.right("").is_err() && admission.right("other").is_err());
        assert_eq!(admission.token().unwrap().secret(), "all");
    }

    #[test]
    fn guests_may_take_part_in_the_session_only() {
        let guest = |text, role| Guest { token: Token::chosen(text).unwrap(), role };
        let guests = Guests::new(vec![guest("s", GuestRole::Steer), guest("w", GuestRole::Watch)]);
        let admission = Admission::TokenAndGuests(Token::chosen("all").unwrap(), Arc::new(guests));
        assert_eq!(admission.check("all").unwrap(), Right::Everything);
        assert_eq!(admission.check("s").unwrap(), Right::Guest(GuestRole::Steer));
        assert_eq!(admission.check("w").unwrap(), Right::Guest(GuestRole::Watch));
        assert!(admission.check("x").is_err() && admission.check("").is_err());
        assert!(Right::Everything.check_operation("read").is_ok());
        let watch = Right::Guest(GuestRole::Watch);
        assert!(watch.check_operation(ops::JOIN).is_ok() && watch.check_operation(ops::DESCRIBE).is_ok());
        assert!(watch.check_operation(ops::PICK).is_ok() && watch.check_operation(ops::MEASURE).is_ok());
        for name in ["read", "read_block", "interpret", "percentile", "probe"] {
            assert_eq!(watch.check_operation(name).unwrap_err().kind(), ErrorKind::Denied, "{name}");
        }
    }

    #[test]
    fn pages_are_allowed_by_their_origin() {
        let readers = |origins: &[&str]| {
            let origins: Vec<String> = origins.iter().map(|&origin| origin.to_owned()).collect();
            ZarrReaders::new(Token::chosen("t").unwrap(), &origins)
        };
        let some = readers(&["https://viewer.example", "http://[::1]:8080"]).unwrap();
        assert_eq!(some.page("https://VIEWER.example"), Some("https://VIEWER.example"));
        assert_eq!(some.page("http://[::1]:8080"), Some("http://[::1]:8080"));
        for other in ["https://viewer.example.evil.org", "http://viewer.example", "null", ""] {
            assert_eq!(some.page(other), None, "{other}");
        }
        assert_eq!(readers(&["*"]).unwrap().page("null"), Some("*"));
        assert_eq!(readers(&[]).unwrap().page("https://viewer.example"), None);
        for wrong in ["viewer.example", "https://", "https://a/b", "ftp://a", "https://a b", "null", ""] {
            assert!(readers(&[wrong]).is_err(), "{wrong}");
        }
    }
}
