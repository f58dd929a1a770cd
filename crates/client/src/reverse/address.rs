//! Addresses `await://ADDRESS[:PORT]/DATASET[/ARRAY]`: where a client waits for a server, and the requested data.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use array::{Error, Result};

use crate::url::{DEFAULT_PORT, decode, encode};

/// The scheme with its slashes.
pub(crate) const SCHEME: &str = "await://";

/// Address at which a client waits for a server, and the requested data.
#[derive(Clone, PartialEq, Eq)]
pub struct AwaitAddress {
    /// Address of this machine; port 0 selects a free one.
    pub address: SocketAddr,
    /// Name of the data set on the server; empty means the only one.
    pub dataset: String,
    /// Array, a name or a path; empty means the only one, or all.
    pub array: String,
    /// Token that the server has to present; `None`: a new one is generated.
    pub token: Option<String>,
}

impl FromStr for AwaitAddress {
    type Err = Error;

    /// # Errors
    /// `Invalid`, naming the malformed part.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |what: &str| {
            let form = format!("{SCHEME}ADDRESS[:PORT]/DATASET[/ARRAY]");
            Error::invalid(format!(
                "expected `{form}` with an address of this machine such as 0.0.0.0, {what}"
            ))
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| bad("found another scheme"))?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (dataset, array) = path.split_once('/').unwrap_or((path, ""));
        let mut token = None;
        for part in fragment.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("token", value)) if !value.is_empty() => token = Some(decode(value)?),
                _ => return Err(bad("found something else than `token=...` after `#`")),
            }
        }
        Ok(Self {
            address: parse_authority(authority).ok_or_else(|| bad("found none"))?,
            dataset: decode(dataset)?,
            array: decode(array)?,
            token,
        })
    }
}

fn parse_authority(text: &str) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let alone = || bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, DEFAULT_PORT));
    text.parse().or_else(|_| alone()).ok()
}

impl fmt::Display for AwaitAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.address, encode(&self.dataset).replace('/', "%2F"))?;
        if !self.array.is_empty() {
            write!(f, "/{}", encode(&self.array))?;
        }
        self.token.as_ref().map_or(Ok(()), |token| write!(f, "#token={}", encode(token)))
    }
}

impl fmt::Debug for AwaitAddress {
    /// Without the token: debug output reaches logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Self { token: None, ..self.clone() }, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_formatted() {
        for (text, written) in [
            ("await://0.0.0.0:7000/run", "await://0.0.0.0:7000/run"),
            ("await://127.0.0.1", "await://127.0.0.1:26774/"),
            ("await://[::]:7/a/grid/rho#token=x%20y", "await://[::]:7/a/grid/rho#token=x%20y"),
            ("await://[::1]/a", "await://[::1]:26774/a"),
        ] {
            let address: AwaitAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), written);
            assert_eq!(written.parse::<AwaitAddress>().unwrap(), address);
            assert!(!format!("{address:?}").contains("token"));
        }
    }

    #[test]
    fn errors_show_a_valid_address() {
        for text in ["await://", "await://host:70/x", "await://1.2.3.4:99999/", "await://1.2.3.4/#fp=1"] {
            let error = text.parse::<AwaitAddress>().unwrap_err().to_string();
            assert!(error.contains("0.0.0.0"), "{error}");
        }
    }
}
