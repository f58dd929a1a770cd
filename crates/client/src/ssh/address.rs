//! Addresses `ssh://[USER@]HOST[:PORT]/PATH`, parsed strictly: user and host become arguments of a program that may
//! pass them to a shell (`ProxyCommand ... %h`).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use array::{Error, Result};

use crate::url::{decode, encode};

/// The scheme with its slashes.
pub(crate) const SCHEME: &str = "ssh://";
/// Maximum length of user or host, in bytes.
const MAX_NAME_BYTES: usize = 253;
/// Maximum length of a path, in bytes; the limit of operating systems.
const MAX_PATH_BYTES: usize = 4096;

/// A path on a host that `ssh` reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshAddress {
    /// User to log in as; `None`: the user's ssh configuration decides.
    pub user: Option<String>,
    /// Name, address, or an alias of the user's ssh configuration; IPv6 without brackets.
    pub host: String,
    /// Port of the ssh server; `None`: the user's ssh configuration decides.
    pub port: Option<u16>,
    /// Begins with `/`; relative to the home directory if it begins with `/~/`.
    pub path: String,
}

impl SshAddress {
    /// Returns user, host and port, for display.
    #[must_use]
    pub fn authority(&self) -> String {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{user}{host}{port}")
    }
}

impl fmt::Display for SshAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}{}", self.authority(), encode(&self.path))
    }
}

impl FromStr for SshAddress {
    type Err = Error;

    /// # Errors
    /// `Invalid`, naming the malformed part.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |what: &str| Error::invalid(format!("expected `{SCHEME}[USER@]HOST[:PORT]/PATH`, {what}"));
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| bad("found another scheme"))?;
        let (authority, path) = rest.split_once('/').ok_or_else(|| bad("found no path"))?;
        let path = format!("/{}", decode(path)?);
        if path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(bad("found a path that is too long or contains a zero byte"));
        }
        if path == "/" || path == "/~/" {
            return Err(bad("found no path"));
        }
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (host, port) = split_port(host).map_err(bad)?;
        if user.is_some_and(|user| !is_plain(user, b"._-+@")) {
            return Err(bad("found a user name with other characters than letters, digits and `._-+@`"));
        }
        if !is_plain(host, b"._-:") {
            return Err(bad("found a host with other characters than letters, digits and `._-`"));
        }
        Ok(Self { user: user.map(str::to_owned), host: host.to_owned(), port, path })
    }
}

fn split_port(host: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("found `[` without `]`")?;
            host.parse::<Ipv6Addr>().map_err(|_| "found brackets around text that is not an IPv6 address")?;
            (host, after)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    let port = port.strip_prefix(':').and_then(|port| port.parse().ok()).filter(|&port| port != 0);
    Ok((host, Some(port.ok_or("found a malformed port")?)))
}

/// Returns whether the name contains only characters without a meaning for a shell, and does not begin like an option.
fn is_plain(name: &str, besides: &[u8]) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || besides.contains(&b);
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.starts_with('-') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let got = match text.parse::<SshAddress>() {
            Ok(a) => format!("{:?} {} {:?} `{}`", a.user.as_deref().unwrap_or(""), a.host, a.port, a.path),
            Err(e) => e.message().split_once("/PATH`, ").expect("an error of ours").1.to_owned(),
        };
        assert_eq!(got, expect, "for `{text}`");
    }

    #[test]
    fn addresses_are_parsed() {
        check("ssh://host/data/run.h5", "\"\" host None `/data/run.h5`");
        check("ssh://me@host:2222/~/run.h5", "\"me\" host Some(2222) `/~/run.h5`");
        check("ssh://me@site@[::1]:9/a", "\"me@site\" ::1 Some(9) `/a`");
        check("ssh://h/a%20b/'$(x)';\"#?é", "\"\" h None `/a b/'$(x)';\"#?é`");
        check("ssh://h//etc", "\"\" h None `//etc`");
    }

    #[test]
    fn no_part_is_passed_as_an_option_or_a_command() {
        let host = "found a host with other characters than letters, digits and `._-`";
        let user = "found a user name with other characters than letters, digits and `._-+@`";
        for bad in ["-oProxyCommand=x", "a b", "a;b", "$(x)", "a`b`", "a%h", "é", "", "a'b", "a\nb"] {
            check(&format!("ssh://{bad}/p"), host);
            if !bad.contains("@") {
                check(&format!("ssh://{bad}@h/p"), user);
            }
        }
        check("ssh://-l@h/p", user);
        check("ssh://h:x/p", "found a malformed port");
        check("ssh://h:0/p", "found a malformed port");
        check("ssh://h", "found no path");
        check("ssh://h/", "found no path");
        check("ssh://h/a%00b", "found a path that is too long or contains a zero byte");
        check("ssh://[x]/p", "found brackets around text that is not an IPv6 address");
    }

    #[test]
    fn formatted_addresses_parse_to_the_same_value() {
        for text in ["ssh://me@host:2222/~/a%20b", "ssh://[::1]:9/a%27%22", "ssh://h/x.h5/grid/rho"] {
            let address: SshAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.to_string().parse::<SshAddress>().unwrap(), address);
        }
    }
}
