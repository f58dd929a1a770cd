//! Functions behind the fuzz targets. Each target hands foreign bytes to one function here; a clear error is a
//! fine answer, a panic, a hang, or memory beyond the limit is not. `tools/fuzz.sh` says how they are run and
//! seeded.
//!
//! ```text
//! files    one file of a format          zarr         a folder of files
//! pair     a header with files of data beside it
//! chunk    a stored chunk, by the filters that packed it
//! frames   bytes off a connection        server, client   the machines against any peer, driven by a script
//! datagrams    datagrams and records of the link `lossy`, at either end
//! operations   parameters and answers    description  what a server says it has, and what a viewer makes of it
//! talk     a view and notes in a session texts        what people type
//! ```

pub mod chunk;
pub mod client;
pub mod datagrams;
pub mod description;
pub mod files;
pub mod frames;
pub mod operations;
pub mod pair;
mod script;
#[path = "server.rs"]
mod server_machine;
pub mod talk;
pub mod texts;
pub mod zarr;

// The parsers stand on `array` alone; taken from where they are, so that no target has to build the whole node.
#[path = "../../../crates/export/src/coordinate_selection.rs"]
#[expect(dead_code, reason = "picks are not applied to data sets here")]
mod coordinate_selection;
#[path = "../../../crates/export/src/selection_text.rs"]
#[expect(dead_code, reason = "picks are not applied to data sets here")]
mod selection_text;
#[path = "../../../crates/store/src/formats/common/shuffle.rs"]
mod shuffle;

/// Stand-ins for names in the crate `store` that the decoders of `chunk` use.
mod formats {
    pub(crate) mod common {
        pub(crate) use crate::shuffle;
    }
    pub(crate) mod hdf5 {
        pub(crate) use crate::chunk::filters;
    }
}
#[path = "../../../crates/link/src/server/bulk_apart.rs"]
mod apart;
#[path = "../../../crates/link/src/datagram/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the node counts what happened, a test what is left")]
mod datagram;
#[path = "../../../crates/client/src/url.rs"]
mod url;
#[path = "../../../crates/client/src/ssh/address.rs"]
mod address;
#[path = "../../../crates/client/src/reverse/address.rs"]
mod reverse_address;

/// The machine of a server, and a name that datagrams use from the rest of their crate.
pub mod server {
    pub(crate) use crate::apart as bulk_apart;
    pub use crate::server_machine::play;
}

/// Stand-ins for the names that the parsers use from the rest of the node.
mod ssh {
    pub(crate) use crate::address::{Address, SCHEME};
}

/// Likewise.
mod reverse {
    pub(crate) use crate::reverse_address::{Address, SCHEME};
}

/// Likewise.
mod servers {
    pub(crate) const MAX_SERVERS: usize = 32;
}
