//! Reaching data elsewhere: connections that are made, kept and made again, and sources over them.

pub mod call_by_name;
pub mod catalogue;
pub mod dial;
pub mod paths;
pub mod peers;
pub mod places;
pub mod random;
pub mod reading;
pub mod receive_limit;
pub mod remote;
pub mod requests;
pub mod reverse;
pub mod runtime;
pub mod servers;
pub mod ssh;
pub mod text;
pub mod upstream;
pub mod url;
