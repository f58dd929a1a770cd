//! Viewers: their requests, the pacing and drawing of their pictures, and what is reported about these.

pub(crate) mod check;
pub(crate) mod chosen;
pub(crate) mod fidelity;
pub(crate) mod frame_loop;
pub(crate) mod grid_boxes;
pub(crate) mod layers;
pub(crate) mod outbox;
pub(crate) mod pace;
pub(crate) mod prefetch;
pub(crate) mod scene;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod together;
pub(crate) mod view_plan;
pub(crate) mod viewer_state;
