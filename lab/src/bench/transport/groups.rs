//! Groups of cases, and those that run.

use super::super::options::Options;

/// Groups of cases, as [`Options::only`] names them; `all` adds every controller to `bulk`. `soak` has to be asked for: it
/// takes half an hour.
pub const GROUPS: &[&str] = &[
    "bulk", "get", "streams", "messages", "small", "fresh", "senders", "clients", "fairness", "evenness",
    "lossy", "advice", MOST, SOAK,
];
/// The group that has to be named, and the one that has a link of its own.
pub(super) const SOAK: &str = "soak";
pub(super) const MOST: &str = "most";

pub(super) fn is_chosen(options: &Options, group: &str) -> bool {
    let is_named = options.only.iter().any(|name| name == group);
    // A link that was given is limited by what it is, not by the machine.
    is_named || (options.only.is_empty() && group != SOAK && (group != MOST || options.make_link.is_some()))
}
