//! Locations of data, as users write them: a path, `synthetic:...`, `corridor://HOST[:PORT]/DATASET[/ARRAY]#token=...`,
//! `ssh://[USER@]HOST[:PORT]/PATH`, or `await://ADDRESS[:PORT]/DATASET[/ARRAY]`.
//!
//! Parsing only: nothing is opened or connected here. Malformed text may contain a token anywhere, so errors quote as
//! little of it as possible.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use array::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::reverse;
use crate::servers::MAX_SERVERS;
use crate::ssh::{self, SshAddress};

/// Port of a server if the URL has none: CORRI on a telephone keypad, below the ephemeral range.
pub const DEFAULT_PORT: u16 = 26774;

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 8192;
/// Text before a token in a URL, in lower case.
const TOKEN_KEY: &str = "token=";
/// Maximum length of a key after `#` that an error quotes, in characters.
const MAX_WORD_CHARS: usize = 12;
/// The scheme with its slashes.
const SCHEME: &str = "corridor://";
/// ASCII characters that are escaped in a path: all but letters, digits and `-._~/`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Location of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file or folder on this machine.
    Path(PathBuf),
    /// A computed field, `synthetic:NAME?shape=Z,Y,X&dtype=u8`; the whole text.
    Synthetic(String),
    /// A data set of a Corridor server.
    Remote(Url),
    /// A path on a host that is reached by ssh.
    Ssh(SshAddress),
    /// A data set of a server that connects to this process.
    Awaited(reverse::AwaitAddress),
}

impl FromStr for Location {
    type Err = Error;

    /// # Errors
    /// `Invalid` for text that is not a location.
    fn from_str(text: &str) -> Result<Self> {
        if text.starts_with(SCHEME) {
            return text.parse().map(Self::Remote);
        }
        if text.starts_with("synthetic:") {
            return Ok(Self::Synthetic(text.to_owned()));
        }
        if text.starts_with(ssh::SCHEME) && !has_token(text) {
            return text.parse().map(Self::Ssh);
        }
        if text.starts_with(reverse::SCHEME) {
            return text.parse().map(Self::Awaited);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(other_scheme(scheme));
        }
        if has_token(text) {
            return Err(Error::invalid(format!(
                "expected `{SCHEME}HOST[:PORT]/DATASET#token=...`, found a token in something else"
            )));
        }
        if text.is_empty() || text.contains('\0') {
            return Err(Error::invalid(
                "expected a path, `synthetic:...` or `corridor://...`, found nothing",
            ));
        }
        let path = PathBuf::from(text);
        if names_a_host(text) && !path.exists() {
            return Err(Error::invalid(format!(
                "expected a path, `synthetic:...` or `{SCHEME}HOST[:PORT]/DATASET`, found `{text}`: is `{SCHEME}` missing?"
            )));
        }
        Ok(Self::Path(path))
    }
}

/// Returns whether a path begins like an address of a server: `corridor:/`, `127.0.0.1/`, `HOST:PORT/`.
fn names_a_host(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    let has_port =
        first.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    first == "corridor:" || has_port || first.parse::<std::net::IpAddr>().is_ok()
}

impl Location {
    /// Joins several locations, which must be servers of the same data, into one. A single location may be of any kind.
    ///
    /// # Errors
    /// `Invalid` for none, and for several that are not all URLs of one data set.
    pub fn joined(locations: Vec<Self>) -> Result<Self> {
        if let [only] = &locations[..] {
            return Ok(only.clone());
        }
        let url = |location| match location {
            Self::Remote(url) => Ok(url),
            other => {
                let what = "several locations must be `corridor://` URLs of the same data set";
                Err(Error::invalid(format!("{what}, found {other:?}")))
            }
        };
        let urls = locations.into_iter().map(url).collect::<Result<Vec<_>>>()?;
        Url::joined(urls).map(Self::Remote)
    }

    /// Splits the array's name off: the end of a URL, or the part after an existing file in a path
    /// (`run42.h5/grid/rho`). Empty if none is named.
    #[must_use]
    pub fn split_array(self) -> (Self, String) {
        match self {
            Self::Remote(mut url) => {
                let array = std::mem::take(&mut url.array);
                (Self::Remote(url), array)
            }
            Self::Awaited(mut address) => {
                let array = std::mem::take(&mut address.array);
                (Self::Awaited(address), array)
            }
            Self::Path(path) if !path.exists() => {
                let file = path.ancestors().skip(1).find(|p| p.is_file());
                let Some(file) = file else { return (Self::Path(path), String::new()) };
                let array =
                    path.strip_prefix(file).map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
                (Self::Path(file.to_path_buf()), array)
            }
            other => (other, String::new()),
        }
    }
}

fn other_scheme(scheme: &str) -> Error {
    match scheme {
        "ssh" => Error::invalid(
            "expected `ssh://[USER@]HOST[:PORT]/PATH` without a token: ssh authenticates the user",
        ),
        "http" | "https" | "s3" | "gs" | "file" => Error::invalid(format!(
            "`{scheme}://` is not supported by this version; expected a path, `synthetic:...`, `ssh://HOST/PATH`, `await://ADDRESS/DATASET` or \
             `corridor://HOST[:PORT]/DATASET` (start `corridor serve` beside the data)"
        )),
        _ => Error::invalid(format!(
            "expected a path, `synthetic:...`, `ssh://HOST/PATH`, `await://ADDRESS/DATASET` or `corridor://HOST[:PORT]/DATASET`, found the scheme `{}`",
            without_tokens(scheme)
        )),
    }
}

fn has_token(text: &str) -> bool {
    text.to_ascii_lowercase().contains(TOKEN_KEY)
}

/// Returns `text` without the tokens in it, which may be displayed whatever its origin.
#[must_use]
pub fn without_tokens(text: &str) -> Cow<'_, str> {
    if !has_token(text) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.to_ascii_lowercase().find(TOKEN_KEY) {
        let (before, token) = rest.split_at(at + TOKEN_KEY.len());
        let end = token.find(|c: char| c.is_whitespace() || "&`'\"".contains(c)).unwrap_or(token.len());
        out.push_str(before);
        out.push_str("...");
        rest = &token[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A further server of a URL that names several.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplicaAddress {
    /// Name or address, IPv6 without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Token that authorizes a client at this server.
    pub token: Option<String>,
    /// Fingerprint that its certificate must have.
    pub fingerprint: Option<String>,
}

/// `corridor://HOST[:PORT]/DATASET[/ARRAY]#token=TOKEN&fp=sha256:HEX`.
///
/// Several servers of the same data set are separated by commas: `HOST[:PORT],HOST[:PORT]`. Then a token or fingerprint
/// counts for all of them, or there is one for each, separated by commas too, an empty one for none.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// Name or address, IPv6 without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Name of the data set on the server; empty means the only one.
    pub dataset: String,
    /// Array, a name or a path like `grid/rho`; empty means the only one, or all.
    pub array: String,
    /// Token that authorizes a client.
    pub token: Option<String>,
    /// Fingerprint that the server's certificate must have: `sha256:` and 64 hexadecimal digits.
    pub fingerprint: Option<String>,
    /// Further servers of the same data set.
    pub replicas: Vec<ReplicaAddress>,
}

impl Url {
    /// Returns `host:port` of the (first) server, in the form of `ToSocketAddrs`.
    #[must_use]
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }

    /// Returns the URL without its secrets, for logs and display.
    #[must_use]
    pub fn public(&self) -> String {
        let mut url = Self { token: None, fingerprint: None, ..self.clone() };
        for replica in &mut url.replicas {
            (replica.token, replica.fingerprint) = (None, None);
        }
        url.to_string()
    }

    /// Returns one URL for each server.
    #[must_use]
    pub fn servers(&self) -> Vec<Self> {
        let first = Self { replicas: Vec::new(), ..self.clone() };
        let others = self.replicas.iter().cloned().map(|replica| {
            let ReplicaAddress { host, port, token, fingerprint } = replica;
            Self { host, port, token, fingerprint, ..first.clone() }
        });
        std::iter::once(first.clone()).chain(others).collect()
    }

    /// Joins URLs into one URL of all their servers; they have to name the same data set and array.
    ///
    /// # Errors
    /// `Invalid` if they do not, for none, and for more than [`MAX_SERVERS`] servers.
    pub fn joined(urls: impl IntoIterator<Item = Self>) -> Result<Self> {
        let mut servers = urls.into_iter().flat_map(|url| url.servers());
        let mut all = servers.next().ok_or_else(|| Error::invalid("expected a URL, found none"))?;
        for Self { host, port, dataset, array, token, fingerprint, .. } in servers {
            if (&dataset, &array) != (&all.dataset, &all.array) {
                let (expected, found) = (&all.dataset, dataset);
                return Err(Error::invalid(format!(
                    "expected servers of the data set `{expected}`, found one of `{found}`"
                )));
            }
            all.replicas.push(ReplicaAddress { host, port, token, fingerprint });
        }
        if all.replicas.len() >= MAX_SERVERS {
            let found = all.replicas.len() + 1;
            return Err(Error::invalid(format!("expected at most {MAX_SERVERS} servers, found {found}")));
        }
        Ok(all)
    }

    /// Sets the token of the first server, and of each further server that has none.
    pub fn set_token(&mut self, token: &str) {
        self.token = Some(token.to_owned());
        for replica in &mut self.replicas {
            replica.token.get_or_insert_with(|| token.to_owned());
        }
    }
}

impl FromStr for Url {
    type Err = Error;

    /// # Errors
    /// `Invalid`, naming the malformed part.
    fn from_str(text: &str) -> Result<Self> {
        let bad =
            |what: &str| Error::invalid(format!("expected `corridor://HOST[:PORT]/DATASET[/ARRAY]`, {what}"));
        if text.len() > MAX_URL_BYTES {
            return Err(bad(&format!("found a URL of {} bytes", text.len())));
        }
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| bad("found another scheme"))?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        if has_token(rest) {
            return Err(bad("found a token before `#`; tokens go into `#token=...`"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut servers = parse_authorities(authority).map_err(|what| bad(&what))?;
        let (host, port) = servers.remove(0);
        let (dataset, array) = path.split_once('/').unwrap_or((path, ""));
        let mut url = Self {
            host,
            port,
            dataset: decode(dataset)?,
            array: decode(array)?,
            token: None,
            fingerprint: None,
            replicas: servers
                .into_iter()
                .map(|(host, port)| ReplicaAddress { host, port, token: None, fingerprint: None })
                .collect(),
        };
        url.read_fragment(fragment)?;
        // Length in the form that this program writes, which may take three bytes for one: printed URLs can be parsed
        // again.
        let written_bytes = url.to_string().len();
        if written_bytes > MAX_URL_BYTES {
            return Err(bad(&format!("found a URL of {written_bytes} bytes")));
        }
        Ok(url)
    }
}

impl Url {
    fn read_fragment(&mut self, fragment: &str) -> Result<()> {
        for part in fragment.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "token" => {
                    let token =
                        |text: &str| decode(text).map_err(|_| Error::invalid("expected a token in UTF-8"));
                    let tokens = self.one_for_each(value, "token", token)?;
                    self.token.clone_from(&tokens[0]);
                    self.replicas.iter_mut().zip(&tokens[1..]).for_each(|(r, t)| r.token.clone_from(t));
                }
                "fp" => {
                    let found = self.one_for_each(value, "fingerprint", checked_fingerprint)?;
                    self.fingerprint.clone_from(&found[0]);
                    let others = self.replicas.iter_mut().zip(&found[1..]);
                    others.for_each(|(r, fingerprint)| r.fingerprint.clone_from(fingerprint));
                }
                // Option of the web page.
                "view" => {}
                _ => return Err(unknown_key(part)),
            }
        }
        Ok(())
    }
}

impl Url {
    /// Splits `value` into one entry for each server: a single part is for all servers; several, separated by commas,
    /// are one for each, and an empty part is none. Returns at least one entry.
    fn one_for_each(
        &self,
        value: &str,
        what: &str,
        read: impl Fn(&str) -> Result<String>,
    ) -> Result<Vec<Option<String>>> {
        let servers = self.replicas.len() + 1;
        let parts: Vec<&str> = if servers > 1 { value.split(',').collect() } else { vec![value] };
        if parts.len() == 1 {
            return Ok(vec![Some(read(value)?); servers]);
        }
        if parts.len() != servers {
            let found = parts.len();
            return Err(Error::invalid(format!("expected one {what} or {servers}, found {found}")));
        }
        parts.into_iter().map(|part| if part.is_empty() { Ok(None) } else { read(part).map(Some) }).collect()
    }
}

/// Quotes a word only if it is a misspelled key: anything else may be a token.
fn unknown_key(part: &str) -> Error {
    let is_word = |key: &str| key.len() <= MAX_WORD_CHARS && key.bytes().all(|b| b.is_ascii_lowercase());
    let found = match part.split_once('=') {
        Some((key, _)) if is_word(key) => format!("`{key}`"),
        _ => "something else".to_owned(),
    };
    Error::invalid(format!("expected `token=`, `fp=` or `view=` after `#`, found {found}"))
}

fn checked_fingerprint(value: &str) -> Result<String> {
    let digits = value.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Error::invalid(format!(
            "expected a fingerprint of `sha256:` and 64 hexadecimal digits, found {} other characters",
            value.chars().count()
        )));
    }
    Ok(value.to_ascii_lowercase())
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Parses hosts and ports, separated by commas; at least one.
fn parse_authorities(text: &str) -> std::result::Result<Vec<(String, u16)>, String> {
    let servers = text.split(',').map(parse_authority).collect::<std::result::Result<Vec<_>, _>>()?;
    if servers.len() > MAX_SERVERS {
        return Err(format!("found {} servers, more than {MAX_SERVERS}", servers.len()));
    }
    Ok(servers)
}

/// Formats a key of the fragment: one value if all servers have the same, or else one for each; `None` without values.
fn write_each(key: &str, values: &[Option<String>]) -> Option<String> {
    if values.iter().all(Option::is_none) {
        return None;
    }
    let is_same = values.iter().all(|v| *v == values[0]);
    let shown = if is_same { &values[..1] } else { values };
    let texts: Vec<&str> = shown.iter().map(|v| v.as_deref().unwrap_or_default()).collect();
    Some(format!("{key}={}", texts.join(",")))
}

fn parse_authority(authority: &str) -> std::result::Result<(String, u16), String> {
    if authority.contains('@') {
        return Err("found a user name; tokens go into `#token=...`".into());
    }
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("found `[` without `]`")?;
        host.parse::<Ipv6Addr>().map_err(|_| format!("found `[{host}]`, which is not an IPv6 address"))?;
        let port = match after {
            "" => None,
            after => Some(after.strip_prefix(':').ok_or_else(|| format!("found `{after}` after the host"))?),
        };
        (host, port)
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(fine) {
        return Err(format!("found the host `{host}`"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|&p| p != 0)
            .ok_or_else(|| format!("found the port `{text}`; ports are 1 to 65535"))?,
    };
    Ok((host.to_owned(), port))
}

pub(crate) fn decode(text: &str) -> Result<String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| Error::invalid(format!("expected UTF-8 after percent-decoding, found `{text}`")))
}

/// Encodes a name as a segment of a URL's path.
#[must_use]
pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = self.replicas.iter().map(|r| authority(&r.host, r.port));
        let authorities: Vec<String> = std::iter::once(self.authority()).chain(others).collect();
        let dataset = encode(&self.dataset).replace('/', "%2F");
        write!(f, "{SCHEME}{}/{dataset}", authorities.join(","))?;
        if !self.array.is_empty() {
            write!(f, "/{}", encode(&self.array))?;
        }
        let servers = self.servers();
        let tokens: Vec<_> = servers.iter().map(|s| s.token.as_deref().map(encode)).collect();
        let fingerprints: Vec<_> = servers.iter().map(|s| s.fingerprint.clone()).collect();
        let token = write_each("token", &tokens);
        let fingerprint = write_each("fp", &fingerprints);
        let parts: Vec<String> = token.into_iter().chain(fingerprint).collect();
        if !parts.is_empty() {
            write!(f, "#{}", parts.join("&"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Url {
    /// Without the token: debug output reaches logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let got = match text.parse::<Url>() {
            Ok(u) => format!(
                "{} {} `{}` `{}` {:?} {}",
                u.host,
                u.port,
                u.dataset,
                u.array,
                u.token,
                u.fingerprint.is_some()
            ),
            Err(e) => {
                e.message().trim_start_matches("expected `corridor://HOST[:PORT]/DATASET[/ARRAY]`, ").into()
            }
        };
        assert_eq!(got, expect, "for `{text}`");
    }

    #[test]
    fn every_url_that_is_parsed_can_be_formatted_and_parsed_again() {
        let text = |bytes: usize| format!("corridor://host/{}", "\u{1}".repeat(bytes));
        let url: Url = text(2700).parse().unwrap();
        assert_eq!(url.to_string().parse::<Url>().unwrap(), url);
        assert!(text(2800).parse::<Url>().is_err(), "each character takes three bytes in the formatted URL");
    }

    #[test]
    fn an_address_without_a_scheme_is_an_error() {
        for text in ["corridor:/h/d", "127.0.0.1/d", "h:26774/d", "[::1]:9/d"] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains("is `corridor://` missing?"), "{error}");
        }
        for text in ["nosuch/d", "C:/d", "./h:1/d"] {
            assert!(matches!(text.parse(), Ok(Location::Path(_))), "{text}");
        }
    }

    #[test]
    fn urls_are_parsed() {
        check("corridor://h/tooth.nhdr", "h 26774 `tooth.nhdr` `` None false");
        check("corridor://h:9/a%20b/grid/rho#token=x%2Fy", "h 9 `a b` `grid/rho` Some(\"x/y\") false");
        check("corridor://[::1]:9", "::1 9 `` `` None false");
        let fp = "ab".repeat(32);
        check(&format!("corridor://h/d#token=t&fp=sha256:{fp}&view=x"), "h 26774 `d` `` Some(\"t\") true");
    }

    #[test]
    fn several_servers_share_a_token_or_have_their_own() {
        let (a, b) = ("sha256:".to_owned() + &"ab".repeat(32), "sha256:".to_owned() + &"cd".repeat(32));
        for (text, tokens) in [
            (format!("corridor://h:1,[::1]:2,i:3/d/u#token=t&fp={a}"), ["t", "t", "t"]),
            (format!("corridor://h:1,[::1]:2,i:3/d/u#token=t,,v%2C&fp={a},{b},"), ["t", "", "v,"]),
            ("corridor://h:1,[::1]:2,i:3/d/u".to_owned(), ["", "", ""]),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.to_string(), text);
            let servers = url.servers();
            let found: Vec<String> = servers.iter().map(|s| s.token.clone().unwrap_or_default()).collect();
            assert_eq!(found, tokens, "{text}");
            assert_eq!(servers.iter().map(Url::authority).collect::<Vec<_>>(), ["h:1", "[::1]:2", "i:3"]);
            assert!(servers.iter().all(|s| s.dataset == "d" && s.array == "u" && s.replicas.is_empty()));
            assert_eq!(url.public(), "corridor://h:1,[::1]:2,i:3/d/u");
        }
        let one = |text: &str| text.parse::<Url>().unwrap();
        let both = Url::joined([one("corridor://h/d#token=t"), one("corridor://i,j/d#token=u")]).unwrap();
        assert_eq!(both, one("corridor://h,i,j/d#token=t,u,u"));
        assert!(Url::joined([one("corridor://h/d"), one("corridor://h/e")]).is_err());
        assert!(Url::joined([]).is_err());
        let mut url: Url = "corridor://h,i/d#token=,x".parse().unwrap();
        url.set_token("y");
        assert_eq!(url.to_string(), "corridor://h:26774,i:26774/d#token=y,x");
        for text in [
            "corridor://h,i/d#token=a,b,c",
            "corridor://h,/d",
            "corridor://h,i/d#fp=sha256:1,",
            "corridor://,/d",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
        assert!(format!("corridor://{}/d", ["h"; 33].join(",")).parse::<Url>().is_err());
    }

    #[test]
    fn errors_name_the_malformed_part() {
        check("corridor:///d", "found the host ``");
        check("corridor://h:0/d", "found the port `0`; ports are 1 to 65535");
        check("corridor://h:99999/d", "found the port `99999`; ports are 1 to 65535");
        check("corridor://me@h/d", "found a user name; tokens go into `#token=...`");
        check("corridor://[::1/d", "found `[` without `]`");
        check("corridor://h/d#tokn=x", "expected `token=`, `fp=` or `view=` after `#`, found `tokn`");
        check("corridor://h/d#abc", "expected `token=`, `fp=` or `view=` after `#`, found something else");
        check("corridor://h/%ff", "expected UTF-8 after percent-decoding, found `%ff`");
        check(
            "corridor://h/d#fp=sha256:12",
            "expected a fingerprint of `sha256:` and 64 hexadecimal digits, found 9 other characters",
        );
    }

    #[test]
    fn no_error_contains_the_token() {
        for text in [
            "https://h/d#token=s3cret",
            "ssh://h/d?token=s3cret",
            "#token=s3cret://x",
            "corridr://h/d#TOKEN=s3cret",
            "corridor:/h/d#token=s3cret",
            "h:9/d#token=s3cret",
            "corridor://h/d?token=s3cret",
            "corridor://h/d%23token=s3cret",
            "corridor://h:9#token=s3cret%ff",
            "corridor://h?token=s3cret",
            "corridor://h:token=s3cret",
            "corridor://me:s3cret@h/d",
            "https://me:s3cret@h/d",
            "corridor://h/d#fp=s3cret",
            "corridor://h/d#s3cret",
            "corridor://h/d#tokn=s3cret",
            "corridor://h/d#s3cret=",
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn displayed_text_contains_no_token() {
        for (text, shown) in [
            ("no such file `a#token=s3cret&fp=1`, Token=t x", "no such file `a#token=...&fp=1`, Token=... x"),
            ("token=", "token=..."),
            ("İtoken=é'", "İtoken=...'"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_tokens(text), shown);
        }
    }

    #[test]
    fn formatted_urls_equal_the_text() {
        let fp = "ab".repeat(32);
        for text in [
            "corridor://h:9/a%20b/grid/rho".to_owned(),
            format!("corridor://[::1]:26774/d#token=t%2F&fp=sha256:{fp}"),
            "corridor://h:9/a%2Fb/c".to_owned(),
        ] {
            let text = text.replace("t%2F", "t-1");
            assert_eq!(text.parse::<Url>().unwrap().to_string(), text);
        }
        let url: Url = "corridor://h/d#token=secret".parse().unwrap();
        assert!(!format!("{url:?}{}", url.public()).contains("secret"));
    }

    #[test]
    fn locations_are_distinguished() {
        let kind = |t: &str| match t.parse::<Location>() {
            Ok(Location::Path(_)) => "path".to_owned(),
            Ok(Location::Synthetic(_)) => "synthetic".to_owned(),
            Ok(Location::Remote(_)) => "remote".to_owned(),
            Ok(Location::Ssh(_)) => "ssh".to_owned(),
            Ok(Location::Awaited(_)) => "awaited".to_owned(),
            Err(e) => format!("{:?}", e.kind()),
        };
        assert_eq!(kind("data/x.nc"), "path");
        assert_eq!(kind("C:x"), "path");
        assert_eq!(kind("synthetic:waves?shape=4,4,4"), "synthetic");
        assert_eq!(kind("corridor://h/d"), "remote");
        assert_eq!(kind("ssh://h/d"), "ssh");
        assert_eq!(kind("await://0.0.0.0/d#token=t"), "awaited");
        assert_eq!(kind("s3://h/d"), "Invalid");
        assert_eq!(kind("https://h/d"), "Invalid");
        assert_eq!(kind("gopher://h/d"), "Invalid");
        assert_eq!(kind(""), "Invalid");
    }
}
