//! Viewers: what one of them wants to see, when and how sharply it is drawn, and what is said about it.

pub(crate) mod fidelity;
pub(crate) mod frame_loop;
pub(crate) mod grid_boxes;
pub(crate) mod outbox;
pub(crate) mod pace;
pub(crate) mod prefetch;
pub(crate) mod scene;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod view_plan;
pub(crate) mod viewer_state;
