//! Data that a session views: their node, the operations on them, and the session, which follows their changes.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use array::{
    Completion, Completions, Dataset, Error, PackedChunk, ReadEnds, ReadRequest, Region, Result, Source, Want,
};
use client::reading::read_batches;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use server::exports::{Export, Opener};
use server::guests::Guests;
use server::ops::{NodeState, OperationRegistry};
use stream::{DrawDevice, DrawResources, RankChannels, Regridded, RemovalHook, Session};
use view::View;

use crate::geometry;
use crate::handlers::interpret::InterpretHandler;
use crate::handlers::join::JoinHandler;
use crate::handlers::measure::{MeasureHandler, PickHandler};
use crate::handlers::saving::{FilmHandler, SavingState, StillHandler};
use crate::handlers::servers::ServersHandler;
use crate::node::{self, ServerOptions};
use crate::operations::of_data_server;

/// Interval at which a viewed file is checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Opens the data of a session and returns their node with the operations on them.
pub(crate) async fn prepare(
    options: &ServerOptions,
    opener: &dyn Opener,
    first_view: Option<View>,
    device: DrawDevice,
    ranks: Option<RankChannels>,
) -> Result<(Arc<NodeState>, OperationRegistry)> {
    let shared = node::open_by(options, opener).await?;
    let export = shared.exports.find("").await?;
    let latest: Arc<dyn Source> = Arc::new(LatestData(Arc::clone(&export)));
    let regridded = Regridded::open(Arc::clone(&latest)).await?;
    let source = Arc::new(regridded.clone());
    let dataset = source.describe().await?;
    let named = export.stack().await?.array.clone();
    let first_view =
        first_view.or_else(|| (!named.is_empty()).then(|| View { array: named, ..View::default() }));
    let memory_bytes = options.context.budget.render;
    let resources = DrawResources::open(device, memory_bytes).await?;
    let geometry = geometry::for_session(Arc::clone(&export), first_view.as_ref());
    let resources = resources.with_geometry(Arc::clone(&geometry));
    let opened = Arc::clone(&export);
    let work = Arc::new(move |task| opened.open_stack().and_then(|stack| stack.work.progress(task)));
    // Each rank opens the file itself.
    let has_ranks = ranks.is_some();
    let session = match ranks {
        Some(ranks) => Session::begin_with_ranks(dataset, source, resources, first_view, work, ranks)?,
        None => Session::begin(dataset, source, resources, first_view, work)?,
    }
    .telling_axes(regridded);
    let session = match options.admission.guests() {
        Some(guests) => session.withdrawing(removal_of(Arc::clone(guests))),
        None => session,
    };
    let mut registry = of_data_server();
    let session = Arc::new(session);
    if let Some(path) = export.path() {
        session.run_beside(follow_file(path.to_owned(), Arc::downgrade(&session)));
    }
    if !has_ranks {
        registry.add(InterpretHandler::new(Arc::clone(&session)));
    }
    registry.add(PickHandler::new(Arc::clone(&session)));
    registry.add(MeasureHandler::new(Arc::clone(&session)));
    let saving = SavingState::new(Arc::clone(&session), latest, geometry, options.context.budget.saving);
    registry.add(StillHandler(Arc::clone(&saving)));
    registry.add(FilmHandler(saving));
    registry.add(JoinHandler::new(session));
    registry.add(ServersHandler);
    Ok((shared, registry))
}

/// Returns how the access of guests is taken away whom an owner removes.
fn removal_of(guests: Arc<Guests>) -> RemovalHook {
    Box::new(move |member| {
        let withdrawn = guests.remove(&member.secret, member.connection);
        let withdrawn = withdrawn.inspect_err(|error| tracing::error!(%error, "no new token"));
        let link = withdrawn.ok().flatten()?;
        let (name, role) = (&member.name, link.role.name());
        Some(link.token.map_or_else(
            || format!("{name} was removed."),
            |token| {
                format!(
                    "{name} was removed, and the link for the role `{role}` is replaced: give new guests this token, {}",
                    token.secret()
                )
            },
        ))
    })
}

/// Makes the session describe its file again when size or modification time change; ends with the session.
async fn follow_file(path: PathBuf, session: Weak<Session>) {
    let state = async || {
        tokio::fs::metadata(&path).await.ok().map(|metadata| (metadata.len(), metadata.modified().ok()))
    };
    let mut known = state().await;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(session) = session.upgrade() else { return };
        let now = state().await;
        if now != known {
            known = now;
            session.describe_again();
        }
    }
}

/// Current data of an export: they may change between two calls.
pub(crate) struct LatestData(pub(crate) Arc<Export>);

impl Source for LatestData {
    fn describe(&self) -> BoxFuture<'static, Result<Arc<Dataset>>> {
        let export = Arc::clone(&self.0);
        async move { export.describe().await }.boxed()
    }

    fn blocks(&self, wants: Vec<Want>) -> Completions {
        let export = Arc::clone(&self.0);
        async move {
            match export.stack().await {
                Ok(stack) => stack.source.blocks(wants),
                Err(error) => all_fail(wants, &error),
            }
        }
        .flatten_stream()
        .boxed()
    }

    fn read(&self, request: ReadRequest, into: Region) -> BoxFuture<'static, Result<()>> {
        let export = Arc::clone(&self.0);
        async move { export.stack().await?.source.read(request, into).await }.boxed()
    }

    fn read_many(&self, reads: Vec<(ReadRequest, Region)>) -> ReadEnds {
        let export = Arc::clone(&self.0);
        async move {
            match export.stack().await {
                Ok(stack) => stack.source.read_many(reads),
                Err(error) => read_batches::all_fail(reads.len(), error),
            }
        }
        .flatten_stream()
        .boxed()
    }

    fn packed(&self, request: &ReadRequest) -> BoxFuture<'static, Result<Option<PackedChunk>>> {
        let (export, request) = (Arc::clone(&self.0), request.clone());
        async move { export.stack().await?.source.packed(&request).await }.boxed()
    }
}

fn all_fail(wants: Vec<Want>, error: &Error) -> Completions {
    let ends: Vec<_> =
        wants.into_iter().map(|want| Completion { key: want.key(), result: Err(error.clone()) }).collect();
    futures::stream::iter(ends).boxed()
}
