//! Viewing node with one data set, one session and one page, as started by `corridor view`.

use std::sync::Arc;

use array::Result;
use server::exports::Opener;
use stream::{DrawDevice, DrawResources, RankChannels, Regridded, run_worker};
use view::View;

use crate::node::{self, FurtherData, ServerNode, ServerOptions};
use crate::opening::Opening;
use crate::viewed::{LatestData, prepare};

/// Starts a viewing node for the single location in `options`. It answers the operations of a data server, and `join`,
/// `pick`, `measure`, `still`, `film`, `servers`, `interpret`, `open` and `places`. With `ranks` it is the first of several
/// ranks that draw together; the others call
/// [`assist`].
///
/// # Errors
/// The errors of opening and listening and of opening the devices; `Unsupported` if there is nothing to draw.
pub async fn start(
    options: &ServerOptions,
    first_view: Option<View>,
    device: DrawDevice,
    ranks: Option<RankChannels>,
) -> Result<ServerNode> {
    store::step_back();
    start_by(options, &options.context, first_view, device, ranks).await
}

/// Starts a viewing node as [`start`] does, with data that `opener` opens at the location, in a process that also does
/// other work.
///
/// # Errors
/// As [`start`].
pub async fn start_by(
    options: &ServerOptions,
    opener: &dyn Opener,
    first_view: Option<View>,
    device: DrawDevice,
    ranks: Option<RankChannels>,
) -> Result<ServerNode> {
    // Several ranks draw one data set.
    let opening = if ranks.is_none() { Some(Opening::new(options, device)?) } else { None };
    let (shared, mut registry) = prepare(options, opener, first_view, device, ranks).await?;
    let further = opening.map_or_else(FurtherData::default, |opening| opening.register_first(&mut registry));
    node::start_with(options, shared, registry, further).await
}

/// Draws this rank's share for the viewing node at rank 0, with the data and the memory of `options`; does not listen.
/// Ends with rank 0.
///
/// # Errors
/// The errors of opening and of [`run_worker`].
///
/// # Cancel safety
/// As [`run_worker`].
pub async fn assist(options: &ServerOptions, ranks: RankChannels) -> Result<()> {
    store::step_back();
    let shared = node::open(options).await?;
    let source = Arc::new(Regridded::open(Arc::new(LatestData(shared.exports.find("").await?))).await?);
    let resources = DrawResources::open(DrawDevice::Cpu, options.context.budget.render).await?;
    run_worker(source, resources, ranks).await
}
