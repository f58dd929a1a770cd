//! `view`: a viewing node: one data set, one session, one page.

use std::sync::Arc;

use array::{Completions, Dataset, PackedChunk, ReadEnds, ReadRequest, Region, Result, Source, Want};
use futures::future::{BoxFuture, FutureExt};
use session::View;
use stream::{Device, Means, Ranks, Session, follow};

use crate::exports::Export;
use crate::join::Join;
use crate::node::{self, Node, Options};
use crate::ops::Registry;
use crate::ops::servers::TellServers;

/// Starts a viewing node on the one location in `options`. It answers what a data server answers, `join` and
/// `servers`. With `ranks` it is the first of several that draw together; the others [`assist`].
///
/// # Errors
/// Those of opening and listening and of [`Means::open`]; `Unsupported` when there is nothing to draw.
pub async fn start(
    options: &Options,
    first_view: Option<View>,
    device: Device,
    ranks: Option<Ranks>,
) -> Result<Node> {
    store::step_back();
    let shared = node::open(options).await?;
    let export = shared.exports.find("")?;
    let source = Arc::new(Latest(Arc::clone(export)));
    let dataset = source.describe().await?;
    let named = export.stack().array.clone();
    let first_view =
        first_view.or_else(|| (!named.is_empty()).then(|| View { array: named, ..View::default() }));
    let memory_bytes = options.context.budget.render;
    let means = Means::open(device, memory_bytes).await?;
    let worked = Arc::clone(export);
    let work = Arc::new(move |task| worked.stack().work.share(task));
    let session = match ranks {
        Some(ranks) => Session::lead(dataset, source, means, first_view, work, ranks)?,
        None => Session::begin(dataset, source, means, first_view, work)?,
    };
    let mut registry = Registry::of_data_server();
    registry.add(Join::new(Arc::new(session)));
    registry.add(TellServers);
    node::start(options, shared, registry).await
}

/// Draws this rank's share for the viewing node that rank 0 is, with the data and the memory that `options` name; it listens
/// nowhere. Ends with rank 0.
///
/// # Errors
/// Those of opening and of [`follow`].
///
/// # Cancel safety
/// As [`follow`].
pub async fn assist(options: &Options, ranks: Ranks) -> Result<()> {
    store::step_back();
    let shared = node::open(options).await?;
    let source = Arc::new(Latest(Arc::clone(shared.exports.find("")?)));
    let means = Means::open(Device::Cpu, options.context.budget.render).await?;
    follow(source, means, ranks).await
}

/// The data of an export as they are now: described again, it may be other data than before.
struct Latest(Arc<Export>);

impl Source for Latest {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let export = Arc::clone(&self.0);
        async move { export.describe().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        self.0.stack().source.blocks(wants)
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        self.0.stack().source.read(request, into)
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        self.0.stack().source.read_many(reads)
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        self.0.stack().source.packed(request)
    }
}
