//! `view`: a viewing node: one data set, one session, one page.

use std::sync::Arc;

use array::{Result, Source};
use session::View;
use stream::Session;

use crate::join::Join;
use crate::node::{self, Node, Options};
use crate::ops::Registry;

/// Starts a viewing node on the one location in `options`. It answers what a data server answers, and `join`.
///
/// # Errors
/// Those of opening and listening; `Unsupported` when there is nothing to draw.
pub async fn start(options: &Options, first_view: Option<View>) -> Result<Node> {
    let shared = node::open(options).await?;
    let export = shared.exports.find("")?;
    let stack = export.stack();
    let dataset = stack.source.describe().await?;
    let memory_bytes = options.context.budget.render;
    let session = Session::begin(dataset, Arc::clone(&stack.source), memory_bytes, first_view)?;
    let mut registry = Registry::of_data_server();
    registry.add(Arc::new(Join::new(Arc::new(session))));
    node::start(options, shared, registry).await
}
