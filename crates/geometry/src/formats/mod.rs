//! Readers, one for each format.

pub(crate) mod encoded;
pub(crate) mod freesurfer;
pub(crate) mod geojson;
pub(crate) mod gifti;
pub(crate) mod glb;
pub(crate) mod ply;
pub(crate) mod shapefile;
pub(crate) mod stl;
pub(crate) mod table;
pub(crate) mod vtp;
