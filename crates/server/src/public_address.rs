//! Addresses by which browsers reach this server: its names, and the addresses that reverse proxies give it.
//!
//! A browser sends the requested host (`Host`) and the origin of the page that asks (`Origin`). Both have to be this
//! server's, so that neither another site's page nor another name for this address has access. Behind a proxy they are
//! the proxy's: these are set by `--public-url`, or sent by a trusted proxy (`X-Forwarded-Host`). The header affects
//! only the page: a name that is not this server's is never accepted from a header, because a page under such a name
//! could send it. Refusals name the option to set.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use array::{Error, Result};
use axum::http::{HeaderMap, Uri, header};

/// Maximum number of public addresses of a server, and of proxies.
const MAX_PUBLIC: usize = 64;
/// Maximum length of a public address, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// An address that a proxy gives this server: `https://viz.example.org/run42/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    scheme: &'static str,
    /// Authority in the form of browsers: in lower case, without the default port of the scheme.
    authority: String,
    /// Path; begins and ends with a slash.
    path: String,
}

impl FromStr for PublicUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected the address that people open, such as `https://viz.example.org/run42/`, found `{text}`"
            ))
        };
        let is_plain = |c: char| c.is_ascii_graphic() && !"?#\\\"'<>{}|^`;,".contains(c);
        if text.len() > MAX_URL_BYTES || !text.chars().all(is_plain) {
            return Err(bad());
        }
        let (scheme, rest) = match text.split_once("://") {
            Some(("https", rest)) => ("https", rest),
            Some(("http", rest)) => ("http", rest),
            _ => return Err(bad()),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let authority = normal(scheme, authority).filter(|_| !path.contains("//")).ok_or_else(bad)?;
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { "/".to_owned() } else { format!("/{path}/") };
        Ok(Self { scheme, authority, path })
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

/// Returns an authority in the form of browsers' `Origin`; `None` if it is malformed.
fn normal(scheme: &str, authority: &str) -> Option<String> {
    let (name, port) = split_port(authority)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let own = if scheme == "https" { 443 } else { 80 };
    let name = name.to_ascii_lowercase();
    match port {
        "" => Some(name),
        port => {
            port.parse::<u16>().ok().map(|port| if port == own { name } else { format!("{name}:{port}") })
        }
    }
}

/// Addresses of proxies whose headers are trusted: `10.0.0.5`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyNetwork {
    address: IpAddr,
    bits: u8,
}

impl FromStr for ProxyNetwork {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!("expected an address or a network such as `10.0.0.0/8`, found `{text}`"))
        };
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), str::parse).map_err(|_| bad())?;
        if bits > all { Err(bad()) } else { Ok(Self { address, bits }) }
    }
}

impl ProxyNetwork {
    fn contains(&self, other: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, true),
            IpAddr::V6(v6) => (u128::from(v6), false),
        };
        let ((own, is_v4), (other, other_is_v4)) = (bits(self.address), bits(other.to_canonical()));
        let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
        is_v4 == other_is_v4 && own & mask == other & mask
    }
}

/// Proxies in front of a server.
#[derive(Clone, Debug, Default)]
pub struct ReverseProxy {
    /// Public addresses; the first one is printed.
    pub public: Vec<PublicUrl>,
    /// Proxies whose headers are trusted, besides those on this machine.
    pub trusted: Vec<ProxyNetwork>,
}

impl ReverseProxy {
    /// Parses the user's options.
    ///
    /// # Errors
    /// `Invalid` for a malformed address, and for too many.
    pub fn new(public: &[String], trusted: &[String]) -> Result<Self> {
        if public.len() > MAX_PUBLIC || trusted.len() > MAX_PUBLIC {
            return Err(Error::invalid(format!(
                "expected at most {MAX_PUBLIC} public addresses and proxies"
            )));
        }
        let public = public.iter().map(|text| text.parse()).collect::<Result<_>>()?;
        Ok(Self { public, trusted: trusted.iter().map(|text| text.parse()).collect::<Result<_>>()? })
    }
}

/// Peer of the connection of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPeer {
    pub(crate) address: IpAddr,
    pub(crate) is_encrypted: bool,
}

/// Names and proxies of this server, by which requests are checked.
#[derive(Debug)]
pub struct ServerNames {
    /// Names besides addresses and `localhost`; `*.example.org` for those of a domain.
    pub hosts: Vec<String>,
    /// Proxies in front of it.
    pub proxies: ReverseProxy,
    /// Port on which it listens.
    pub port: u16,
    /// Whether a token is required.
    pub is_guarded: bool,
}

impl ServerNames {
    /// Returns the `Host` header, if it is an address, `localhost` or one of this server's names. Another name that
    /// resolves to this machine (DNS rebinding) is refused.
    pub(crate) fn host(&self, headers: &HeaderMap) -> Result<String, String> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err("expected one Host header".into());
        };
        let host = host.to_str().map_err(|_| "the Host header is not text")?;
        let (name, port) = split_port(host).ok_or("the Host header is malformed")?;
        if !port.is_empty() && port.parse::<u16>().is_err() {
            return Err("the Host header is malformed".into());
        }
        if self.is_own(name) {
            return Ok(host.to_owned());
        }
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        let shown = if is_name { name } else { "NAME" };
        Err(format!(
            "the Host header is not a name of this server; if it is the name of a proxy in front of it, start the server with \
             `--public-url https://{shown}/` (the whole address that people open, with its path)"
        ))
    }

    fn is_own(&self, name: &str) -> bool {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let is_public = |url: &PublicUrl| {
            split_port(&url.authority).is_some_and(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        bare.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|own| matches_name(own, name))
            || self.proxies.public.iter().any(is_public)
    }

    fn is_trusted(&self, from: IpAddr) -> bool {
        from.to_canonical().is_loopback() || self.proxies.trusted.iter().any(|proxy| proxy.contains(from))
    }

    /// Checks the origin of a request: only this server's own page may send it. `host` has been checked.
    pub(crate) fn check_origin(
        &self,
        headers: &HeaderMap,
        host: &str,
        from: RequestPeer,
    ) -> Result<(), String> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if self.is_own_page(origin, headers, host, from) {
            return Ok(());
        }
        let is_plain = origin.chars().all(|c| c.is_ascii_alphanumeric() || "-._:/[]".contains(c));
        let shown = if is_plain && origin.contains("://") { origin } else { "https://HOST" };
        let more = if from.address.to_canonical().is_loopback() {
            ""
        } else {
            ", and start this server with `--trusted-proxy ADDRESS`"
        };
        Err(format!(
            "the Origin is another site: the request comes from a page of `{shown}` and names this server `{host}`. If `{shown}` is a \
             proxy in front of this server, start the server with `--public-url {shown}/` (the whole address that people open, with its \
             path), or have the proxy pass on the browser's header (nginx: `proxy_set_header Host $http_host;`){more}"
        ))
    }

    fn is_own_page(&self, origin: &str, headers: &HeaderMap, host: &str, from: RequestPeer) -> bool {
        let Some((scheme @ ("http" | "https"), authority)) = origin.split_once("://") else { return false };
        let Some(page) = normal(scheme, authority) else { return false };
        let is_same = |other: &str| normal(scheme, other).is_some_and(|other| other == page);
        let is_public = |url: &PublicUrl| url.scheme == scheme && url.authority == page;
        // If a proxy terminates the encryption, the origin of the page is https. A page of the other scheme at this
        // very address is this server's or the proxy's.
        let is_asked = is_same(host) && (scheme == "https" || !from.is_encrypted);
        if is_asked || self.proxies.public.iter().any(is_public) {
            return true;
        }
        if !self.is_trusted(from.address) {
            return false;
        }
        if first(headers, "x-forwarded-host").is_some_and(is_same) {
            return true;
        }
        // A proxy may pass on the name without the port (nginx's `Host $host`); browsers omit only 80 and 443. A page
        // of another program at the same name has the same origin, but has no access without the token.
        let is_cut = |host: &str| split_port(host).is_some_and(|(_, port)| port.is_empty());
        let name = |text: &str| split_port(text).map(|(name, _)| name.to_ascii_lowercase());
        self.is_guarded && is_cut(host) && ![80, 443].contains(&self.port) && name(&page) == name(host)
    }

    /// Returns whether a proxy reports that the request reached it unencrypted.
    pub(crate) fn came_unencrypted(&self, headers: &HeaderMap, from: RequestPeer) -> bool {
        let scheme = first(headers, "x-forwarded-proto");
        let client = first(headers, "x-forwarded-for").and_then(address_of);
        self.is_trusted(from.address)
            && scheme.is_some_and(|scheme| {
                scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("ws")
            })
            && client.is_some_and(|client| !client.to_canonical().is_loopback())
    }

    /// Returns the WebSocket addresses that this server's page may connect to, for its policy. `host` has been checked.
    pub(crate) fn sockets(&self, host: &str) -> String {
        let of = |authority: &str| format!(" ws://{authority} wss://{authority}");
        let public = self.proxies.public.iter().map(|url| of(&url.authority));
        std::iter::once(of(host)).chain(public).collect()
    }

    /// Removes the prefix that a proxy left in the path; redirects if the slash at the end is missing.
    pub(crate) fn stripped(&self, uri: &Uri) -> Option<StrippedPath> {
        let path = uri.path();
        // JupyterHub's proxy passes on paths without a change.
        let hub = format!("/proxy/absolute/{}/", self.port);
        let by_hub = path.find(&hub).map(|at| at + hub.len());
        if by_hub.is_none() && path.ends_with(hub.trim_end_matches('/')) {
            return Some(StrippedPath::Slash(with_slash(path)));
        }
        let prefixes =
            self.proxies.public.iter().map(|url| url.path.as_str()).filter(|prefix| *prefix != "/");
        for prefix in prefixes {
            if path == prefix.trim_end_matches('/') {
                return Some(StrippedPath::Slash(with_slash(path)));
            }
        }
        let by_url = || {
            let prefixes = self.proxies.public.iter().map(|url| url.path.as_str());
            prefixes.filter(|&prefix| prefix != "/" && path.starts_with(prefix)).map(str::len).max()
        };
        let begin = by_hub.or_else(by_url)?;
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("/{}{query}", &path[begin..]).parse().ok().map(StrippedPath::Path)
    }
}

/// Result of removing a prefix from a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StrippedPath {
    /// The path without the prefix.
    Path(Uri),
    /// Relative redirection to the same path with a slash at the end.
    Slash(String),
}

/// Returns the last part of a path with a slash, as a relative redirection.
fn with_slash(path: &str) -> String {
    format!("{}/", path.rsplit('/').next().unwrap_or_default())
}

/// Returns the first of the values that proxies have added to a header.
fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()?.split(',').next().map(str::trim).filter(|value| !value.is_empty())
}

/// Returns whether a name of the server, which may be `*.DOMAIN`, matches a requested name.
fn matches_name(own: &str, name: &str) -> bool {
    match own.strip_prefix("*.") {
        Some(domain) => name.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(domain)),
        None => own.eq_ignore_ascii_case(name),
    }
}

fn split_port(host: &str) -> Option<(&str, &str)> {
    if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        let (name, rest) = host.split_at(end + 2);
        return Some((name, if rest.is_empty() { "" } else { rest.strip_prefix(':')? }));
    }
    Some(host.split_once(':').unwrap_or((host, "")))
}

/// Parses the address of a client as a proxy reports it, with or without port.
fn address_of(client: &str) -> Option<IpAddr> {
    let bare = client.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| client.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| ((*k).parse().unwrap(), v.parse().unwrap())).collect()
    }

    fn names(public: &[&str]) -> ServerNames {
        let public: Vec<String> = public.iter().map(|&url| url.to_owned()).collect();
        let proxies = ReverseProxy::new(&public, &["10.1.0.0/16".to_owned()]).unwrap();
        ServerNames {
            hosts: vec!["data.example.org".into(), "*.hpc.example".into()],
            proxies,
            port: 26775,
            is_guarded: true,
        }
    }

    const LOOPBACK: RequestPeer =
        RequestPeer { address: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), is_encrypted: false };

    #[test]
    fn only_addresses_localhost_and_own_names_are_hosts() {
        let names = names(&["https://viz.example.org/run42/"]);
        let check = |host: &'static str| names.host(&headers(&[("host", host)]));
        for host in [
            "127.0.0.1:80",
            "localhost",
            "[::1]:9",
            "10.0.0.7",
            "DATA.example.org:443",
            "viz.example.org",
            "n1.hpc.example:8",
        ] {
            assert!(check(host).is_ok(), "{host}");
        }
        for host in [
            "evil.org",
            "localhost.evil.org",
            "localhost:x",
            "[::1",
            "a'b",
            "127.0.0.1:80:90",
            "hpc.example",
            "a.b.hpc.example",
        ] {
            assert!(check(host).is_err(), "{host}");
        }
        assert!(names.host(&headers(&[])).is_err());
        assert!(check("evil.org").unwrap_err().contains("--public-url https://evil.org/"));
        assert!(!check("evil<b>").unwrap_err().contains('<'), "the header is not inserted as markup");
    }

    #[test]
    fn only_pages_of_this_server_may_send_requests() {
        let names = names(&["https://viz.example.org/run42/"]);
        let check = |origin, host, more: &[(&'static str, &'static str)], from| {
            let mut all = headers(more);
            all.insert("origin", axum::http::HeaderValue::from_static(origin));
            names.check_origin(&all, host, from).is_ok()
        };
        let own = "127.0.0.1:26775";
        let encrypted = RequestPeer { is_encrypted: true, ..LOOPBACK };
        assert!(check("http://127.0.0.1:26775", own, &[], LOOPBACK));
        assert!(check("https://127.0.0.1:26775", own, &[], encrypted));
        assert!(!check("http://127.0.0.1:26775", own, &[], encrypted));
        for foreign in [
            "http://evil.org",
            "null",
            "http://127.0.0.1:3000",
            "",
            "file://",
            "http://127.0.0.1:26775.evil.org",
        ] {
            assert!(!check(foreign, own, &[], LOOPBACK), "{foreign}");
        }
        assert!(check("https://viz.example.org", own, &[], LOOPBACK), "a public address");
        assert!(!check("http://viz.example.org", own, &[], LOOPBACK));
        let forwarded = [("x-forwarded-host", "hub.example.org")];
        assert!(check("https://hub.example.org", own, &forwarded, LOOPBACK), "a proxy on this machine");
        let far = |text: &str| RequestPeer { address: text.parse().unwrap(), is_encrypted: true };
        assert!(check("https://hub.example.org", own, &forwarded, far("10.1.2.3")), "a trusted proxy");
        assert!(!check("https://hub.example.org", own, &forwarded, far("10.2.2.3")), "another host");
        assert!(check("http://localhost:8080", "localhost", &[], LOOPBACK), "a proxy that removes the port");
        assert!(!check("http://localhost:8080", "localhost:26775", &[], LOOPBACK), "another port");
        let open = ServerNames { is_guarded: false, ..names };
        let cut = headers(&[("origin", "http://localhost:8080")]);
        assert!(open.check_origin(&cut, "localhost", LOOPBACK).is_err(), "without a token");
        assert!(open.check_origin(&HeaderMap::new(), "127.0.0.1:80", LOOPBACK).is_ok());
        let why = open.check_origin(&headers(&[("origin", "https://a.example")]), own, LOOPBACK).unwrap_err();
        assert!(why.contains("--public-url https://a.example/") && why.contains("$http_host"), "{why}");
    }

    #[test]
    fn path_prefixes_of_proxies_are_removed() {
        let names = names(&["https://viz.example.org/run42", "https://viz.example.org/run42/more/"]);
        let strip = |path: &str| names.stripped(&path.parse().unwrap());
        let path = |text: &str| Some(StrippedPath::Path(text.parse().unwrap()));
        assert_eq!(strip("/run42/wire?x=1"), path("/wire?x=1"));
        assert_eq!(strip("/run42/more/"), path("/"));
        assert_eq!(strip("/run42"), Some(StrippedPath::Slash("run42/".into())));
        assert_eq!(strip("/wire"), None);
        assert_eq!(strip("/run421/wire"), None);
        assert_eq!(strip("/user/x/proxy/absolute/26775/assets/a.js"), path("/assets/a.js"));
        assert_eq!(strip("/user/x/proxy/absolute/26775"), Some(StrippedPath::Slash("26775/".into())));
        assert_eq!(strip("/user/x/proxy/absolute/1/"), None);
    }

    #[test]
    fn addresses_are_written_as_browsers_write_them() {
        let url = |text: &str| text.parse::<PublicUrl>().map(|url| url.to_string());
        assert_eq!(url("https://Viz.example.org:443/a/b").unwrap(), "https://viz.example.org/a/b/");
        assert_eq!(url("http://[::1]:8080").unwrap(), "http://[::1]:8080/");
        for wrong in [
            "viz.example.org",
            "ftp://a/",
            "https://",
            "https://a/?q",
            "https://a b/",
            "https://a/#x",
            "https://a:x/",
        ] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
        for wrong in ["10.0.0.0/33", "x", "10.0.0/8", ""] {
            assert!(wrong.parse::<ProxyNetwork>().is_err(), "{wrong}");
        }
        assert!("fd00::/8".parse::<ProxyNetwork>().unwrap().contains("fd12::1".parse().unwrap()));
        assert!("0.0.0.0/0".parse::<ProxyNetwork>().unwrap().contains("::ffff:1.2.3.4".parse().unwrap()));
    }

    #[test]
    fn a_trusted_proxy_reports_unencrypted_requests() {
        let names = names(&[]);
        let reports =
            |pairs: &[(&'static str, &'static str)]| names.came_unencrypted(&headers(pairs), LOOPBACK);
        assert!(reports(&[("x-forwarded-proto", "http"), ("x-forwarded-for", "192.0.2.7, 10.0.0.1")]));
        for client in ["192.0.2.7:50123", "2001:db8::7", "[2001:db8::7]", "[2001:db8::7]:50123"] {
            let headers = [("x-forwarded-proto", "http"), ("x-forwarded-for", client)];
            assert!(reports(&headers), "{client}");
        }
        assert!(!reports(&[("x-forwarded-proto", "https"), ("x-forwarded-for", "192.0.2.7")]));
        assert!(!reports(&[("x-forwarded-proto", "http"), ("x-forwarded-for", "127.0.0.1")]));
        assert!(!reports(&[]));
    }
}
