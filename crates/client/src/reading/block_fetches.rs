//! Fetches of blocks from remote sources, one by one, with the current priority of each want.

use std::sync::Arc;

use array::{Block, BlockKey, Completion, Completions, Error, Result, Source, Urgency, Want, want};
use futures::StreamExt;
use futures::stream;

/// Answers wants by `fetch`: the most urgent first, at most `most` at a time. The order of fetches in flight is up to
/// `fetch`, which returns `None` for a want that was withdrawn.
///
/// # Cancel safety
/// Dropping the stream withdraws the wants that are not answered.
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

/// Fetches the block `key` of `source` with the priority of `asker`. Does not end after `asker` is withdrawn: to be
/// used within [`Want::drive`] of the same want.
///
/// # Errors
/// The errors of the source.
///
/// # Cancel safety
/// Dropping the future withdraws the block.
pub(crate) async fn one_block(
    source: Arc<dyn Source>,
    key: BlockKey,
    urgency: Urgency,
    asker: &Want,
) -> Result<Arc<Block>> {
    let (want, handle) = want(key, urgency);
    let mut answers = source.blocks(vec![want]);
    match asker.drive(answers.next(), |urgency| handle.adjust(urgency)).await {
        Some(answer) => answer.ok_or_else(|| Error::internal("a source did not answer a want"))?.result,
        None => std::future::pending().await,
    }
}
