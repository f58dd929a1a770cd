//! Tokens: what lets a client in. Random text from the operating system, compared in constant time.

use std::fmt;

use array::{Error, ErrorKind, Result};
use tokio_rustls::rustls::crypto::aws_lc_rs;

use crate::base64;

/// Randomness in a fresh token, bytes.
const RANDOM_BYTES: usize = 24;
/// Longest token the wire carries, bytes.
const MAX_BYTES: usize = 512;
/// A secret that names nobody and allows everything its server offers.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A fresh one: 192 bits of the operating system's randomness.
    ///
    /// # Errors
    /// `Io` when the system gives no randomness.
    pub fn random() -> Result<Self> {
        let mut bytes = [0u8; RANDOM_BYTES];
        aws_lc_rs::default_provider()
            .secure_random
            .fill(&mut bytes)
            .map_err(|_| Error::new(ErrorKind::Io, "the system gave no randomness for a token"))?;
        Ok(Self(base64::encode(&bytes, base64::URL_SAFE)))
    }

    /// One that a person chose.
    ///
    /// # Errors
    /// `Invalid` when empty, longer than the wire carries, or with characters that a header cannot hold.
    pub fn chosen(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > MAX_BYTES || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::invalid(format!(
                "expected a token of 1 to {MAX_BYTES} printable ASCII characters without spaces"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether `offered` is the same, in a time that depends on `offered`'s length only.
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

/// Who may come in.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Whoever shows this token.
    Token(Token),
    /// Everybody who can reach the port: a choice one must make.
    Everybody,
}

impl Admission {
    /// # Errors
    /// `Denied`, saying whether a token was missing or wrong, never which would be right.
    pub fn check(&self, offered: &str) -> Result<()> {
        match self {
            Self::Everybody => Ok(()),
            Self::Token(token) if token.matches(offered) => Ok(()),
            Self::Token(_) if offered.is_empty() => Err(Error::new(
                ErrorKind::Denied,
                "this server needs a token; give the whole printed link, or CORRIDOR_TOKEN",
            )),
            Self::Token(_) => Err(Error::new(ErrorKind::Denied, "the token is not the one of this server")),
        }
    }

    /// The token to print in links, if there is one.
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Token(token) => Some(token),
            Self::Everybody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_refusal_does_not_tell_the_secret() {
        let admission = Admission::Token(Token::chosen("s3cret").unwrap());
        assert!(admission.check("s3cret").is_ok());
        for offered in ["", "wrong"] {
            let error = admission.check(offered).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            assert!(!error.to_string().contains("s3cret"));
        }
        assert!(!format!("{admission:?}").contains("s3cret"));
    }
}
