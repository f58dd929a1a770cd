//! Blocks from several servers: each from any server with room, or from one of its homes.

use std::sync::Arc;

use array::{Block, Completion, Completions, Result, Want};
use futures::{StreamExt, stream};

use super::first_answer::{Candidates, ItemUrgency, WorkItem, first_answer};
use super::group::{ReplicaSource, ServerGroup};
use super::{SharingRule, homes};
use crate::reading::block_fetches::one_block;

/// Maximum number of wants of one call that are queued or in flight; the windows of the servers limit those in flight.
const MAX_WANTS: usize = 1024;

pub(super) fn blocks(group: Arc<ServerGroup>, rule: SharingRule, mut wants: Vec<Want>) -> Completions {
    // Servers order the wants in flight; of the others, the most urgent come first.
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

/// Fetches one block; `None` if it was withdrawn.
async fn one(group: &ServerGroup, rule: SharingRule, want: Want) -> Option<Completion> {
    // The permit holder adapts to its priority.
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
