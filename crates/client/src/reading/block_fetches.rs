//! Blocks of sources that have them from elsewhere: fetched one by one, each as urgent as its want is by now.

use std::sync::Arc;

use array::{Block, BlockKey, Completion, Completions, Error, Result, Source, Urgency, Want, want};
use futures::StreamExt;
use futures::stream;

/// Answers wants by `fetch`, those first that are most urgent now, at most `most` at a time; who fetches orders those
/// under way. `fetch` gives `None` for a want that was withdrawn.
///
/// # Cancel safety
/// Dropping it withdraws what is not answered yet.
pub(crate) fn one_by_one<F>(
    mut wants: Vec<Want>,
    most: usize,
    fetch: impl Fn(Want) -> F + Send + 'static,
) -> Completions
where
    F: Future<Output = Option<Completion>> + Send + 'static,
{
    wants.sort_by_key(|w| std::cmp::Reverse(w.urgency().priority));
    stream::iter(wants).map(fetch).buffer_unordered(most).filter_map(std::future::ready).boxed()
}

/// The block `key` of `source`, as urgent as `asker` says while it waits. Never ends once nobody waits for `asker`: to be used
/// within [`Want::drive`] of the same one.
///
/// # Errors
/// The source's.
///
/// # Cancel safety
/// Dropping it withdraws the block.
pub(crate) async fn one_block(
    source: Arc<dyn Source>,
    key: BlockKey,
    urgency: Urgency,
    asker: &Want,
) -> Result<Arc<Block>> {
    let (want, handle) = want(key, urgency);
    let mut answers = source.blocks(vec![want]);
    match asker.drive(answers.next(), |urgency| handle.adjust(urgency)).await {
        Some(answer) => answer.ok_or_else(|| Error::internal("a source left a want unanswered"))?.result,
        None => std::future::pending().await,
    }
}
