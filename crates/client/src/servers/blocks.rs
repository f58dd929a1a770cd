//! Blocks from several servers: each by whoever can, or by its home.

use std::sync::Arc;

use array::{Block, Completion, Completions, Result, Want};
use futures::{StreamExt, stream};

use super::first_answer::{Candidates, ItemUrgency, WorkItem, first_answer};
use super::group::{ReplicaSource, ServerGroup};
use super::{SharingRule, homes};
use crate::reading::block_fetches::one_block;

/// Wants of one call that stand in line or are under way; what servers have in hand is bounded by their windows.
const MAX_WANTS: usize = 1024;

pub(super) fn blocks(group: Arc<ServerGroup>, rule: SharingRule, mut wants: Vec<Want>) -> Completions {
    // Those under way are ordered by whoever has them; of those that are not, the most urgent come first.
    wants.sort_by_key(|w| std::cmp::Reverse(w.urgency().priority));
    stream::iter(wants)
        .map(move |want| {
            let group = Arc::clone(&group);
            async move { one(&group, rule, want).await }
        })
        .buffer_unordered(MAX_WANTS)
        .filter_map(std::future::ready)
        .boxed()
}

/// `None` when it was withdrawn.
async fn one(group: &ServerGroup, rule: SharingRule, want: Want) -> Option<Completion> {
    // Whoever has it in hand looks at its urgency.
    let result = want.drive(fetch(group, rule, &want), |_| ()).await?;
    Some(Completion { key: want.key(), result })
}

async fn fetch(group: &ServerGroup, rule: SharingRule, want: &Want) -> Result<Arc<Block>> {
    let key = want.key();
    let dataset = group.dataset().await?;
    let bytes = dataset.block(key)?.size_bytes;
    let candidates = match rule {
        SharingRule::Spread => Candidates::any(group.all()),
        SharingRule::Homes { copies } => Candidates::in_order(homes::of_block(group.names(), &key, copies)),
    };
    let piece = WorkItem { asked: ItemUrgency::Want(want), bytes, candidates, first: None };
    first_answer(group, &dataset, piece, |member, urgency| {
        let source: Arc<dyn ReplicaSource> = Arc::clone(group.source(member));
        Box::pin(one_block(source, key, urgency, want))
    })
    .await
}
