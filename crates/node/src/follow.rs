//! One block of another source, on behalf of a want: its urgency follows the want's.

use std::sync::Arc;

use array::{Block, BlockKey, Error, Result, Source, Urgency, Want, want};
use futures::StreamExt;

/// The block `key` of `source`, as urgent as `asker` says while it waits.
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
    let mut seen = 0;
    loop {
        tokio::select! {
            biased;
            answer = answers.next() => {
                return answer.ok_or_else(|| Error::internal("a source left a want unanswered"))?.result;
            }
            version = asker.changed(seen) => {
                seen = version;
                handle.adjust(asker.urgency());
            }
        }
    }
}
