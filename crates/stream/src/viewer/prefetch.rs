//! Prefetch of the blocks that a participant will likely view next, while no block of the current view is
//! missing.
//!
//! These are the blocks of the next time step, of the next position of a moving camera, or of a slightly
//! wider field around a camera at rest. They are not stored here, but by the cache before the renderer, which
//! returns them at once. Prefetching yields to all blocks that anybody waits for ([`Priority::PREFETCH`]),
//! and is cancelled when the view changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use array::{BlockKey, Dataset, Priority, Result, Source, Urgency, want};
use futures::StreamExt;
use render::{ImageSize, predicted};
use tokio::task::JoinSet;
use view::View;

use crate::tasks::blocking;
use crate::viewer::layers::{layer_portion, layer_volumes_of};
use crate::viewer::scene::{camera_of, color_by_volume_of, portion_of, shared_camera, volume_of};
use crate::viewer::view_plan::{ViewPlan, layer_level, level_in, picture_demand};

/// Time that all blocks must have been loaded before a prefetch starts.
pub(crate) const PREFETCH_DELAY: Duration = Duration::from_millis(50);
/// Number of further changes like the last one after which the position of a moving camera is predicted.
const CHANGES_AHEAD: f64 = 8.0;
/// Factor of the sides of the picture around a camera at rest.
const WIDER: f64 = 1.25;
/// Divisor of a participant's memory for prefetched blocks: the cache holds other blocks too.
const MEMORY_SHARE: usize = 2;
/// Blocks requested at once; the next ones follow when all of them have arrived.
const BLOCKS_AT_ONCE: usize = 32;

/// Prefetch for one participant; runs until it is dropped.
pub(crate) struct Prefetch {
    _fetching: JoinSet<()>,
}

impl Prefetch {
    /// Starts fetching the blocks that may follow `view_plan`, whose predecessor was the view `before`.
    pub(crate) fn begin(
        source: Arc<dyn Source>,
        dataset: Arc<Dataset>,
        view_plan: &ViewPlan,
        before: Option<&View>,
    ) -> Self {
        let views = likely_views(before, &view_plan.view, &dataset).unwrap_or_default();
        let color_by = view_plan.color_by.iter().flat_map(|color_by| &color_by.demand.blocks);
        let layers = view_plan.layers.iter().flat_map(|layer| &layer.demand.blocks);
        let known: BTreeSet<BlockKey> =
            view_plan.demand.blocks.iter().chain(color_by).chain(layers).map(|block| block.key).collect();
        let (size, share_bytes) = (view_plan.size, view_plan.share_bytes);
        let mut fetching = JoinSet::new();
        fetching.spawn(async move {
            let choose = move || blocks_of(&views, &dataset, size, share_bytes, known);
            match blocking(choose).await.and_then(|blocks| blocks) {
                Ok(blocks) => fetch(&*source, &blocks).await,
                Err(error) => tracing::debug!(%error, "nothing is fetched ahead"),
            }
        });
        Self { _fetching: fetching }
    }
}

/// Returns the views that may follow `now`, the likeliest first.
///
/// # Errors
/// `Invalid` and others for a view that does not fit the data set.
fn likely_views(before: Option<&View>, now: &View, dataset: &Dataset) -> Result<Vec<View>> {
    let volume = volume_of(now, dataset)?;
    let before = before.filter(|before| before.array == now.array);
    let mut views = Vec::new();
    let (array, ..) = now.place_in(dataset)?;
    let array = dataset.array(array)?;
    if let Some(steps) = array.time_axis().map(|axis| array.shape()[axis]) {
        let stride = before.map_or(0, |before| now.time.cast_signed() - before.time.cast_signed());
        let stride = if stride == 0 { 1 } else { stride };
        // Films are repeated from the beginning.
        let time = (now.time.cast_signed() + stride).rem_euclid(steps.cast_signed()).cast_unsigned();
        if time != now.time {
            views.push(View { time, ..now.clone() });
        }
    }
    let camera = camera_of(now, &volume)?;
    let last = before.filter(|before| before.camera.is_some()).map(|before| camera_of(before, &volume));
    let camera = match last {
        Some(Ok(last)) if last != camera => predicted(&last, &camera, CHANGES_AHEAD),
        _ => camera.with_wider_field(WIDER),
    };
    views.push(View { camera: Some(shared_camera(&camera)), ..now.clone() });
    Ok(views)
}

/// Returns the blocks that the pictures of some views need and that are not `known`, as far as memory allows.
fn blocks_of(
    views: &[View],
    dataset: &Dataset,
    size: ImageSize,
    share_bytes: usize,
    mut known: BTreeSet<BlockKey>,
) -> Result<Vec<BlockKey>> {
    let mut left_bytes = share_bytes / MEMORY_SHARE;
    let mut blocks = Vec::new();
    for view in views {
        let volume = volume_of(view, dataset)?;
        let camera = camera_of(view, &volume)?;
        let portion = portion_of(view, &volume);
        let color_by =
            color_by_volume_of(view, dataset)?.map(|color_by| (level_in(view, &volume, &color_by), color_by));
        let layers = layer_volumes_of(view, &volume, dataset)?.into_iter().map(|layer| {
            let portion = layer_portion(&portion, &volume, &layer.view);
            (layer_level(view, &volume, &layer.view), layer.view, portion)
        });
        let layers: Vec<_> = layers.collect();
        let own = std::iter::once((view.level, volume)).chain(color_by);
        let own = own.map(|(level, volume)| (level, volume, portion.clone()));
        for (level, volume, portion) in own.chain(layers) {
            let demand = picture_demand(view, &volume, (&camera, size), &portion, level, share_bytes)?;
            for key in demand.blocks.into_iter().map(|block| block.key).filter(|key| known.insert(*key)) {
                let Some(left) = left_bytes.checked_sub(volume.pool_bytes(&key)) else { return Ok(blocks) };
                left_bytes = left;
                blocks.push(key);
            }
        }
    }
    Ok(blocks)
}

/// Fetches blocks through the cache. Errors are ignored: they are reported when a block is viewed.
async fn fetch(source: &dyn Source, blocks: &[BlockKey]) {
    for some in blocks.chunks(BLOCKS_AT_ONCE) {
        let pairs = some.iter().map(|&key| want(key, Urgency::of(Priority::PREFETCH)));
        let (wants, _handles): (Vec<_>, Vec<_>) = pairs.unzip();
        let mut completions = source.blocks(wants);
        while completions.next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use array::conformance::one_array;

    use super::*;

    fn data(steps: u64) -> Dataset {
        one_array("|u1".parse().unwrap(), &[steps, 64, 64, 64], &[1, 16, 16, 16])
    }

    fn times(before: Option<u64>, now: u64, steps: u64) -> Vec<u64> {
        let dataset = data(steps);
        let view = |time| View { time, ..View::first_of(&dataset).unwrap() };
        let before = before.map(view);
        let views = likely_views(before.as_ref(), &view(now), &dataset).unwrap();
        views.iter().filter(|next| next.time != now).map(|next| next.time).collect()
    }

    #[test]
    fn the_next_time_step_follows_the_last_stride_and_wraps_around() {
        assert_eq!(times(None, 0, 5), [1]);
        assert_eq!(times(Some(2), 3, 5), [4]);
        assert_eq!(times(Some(3), 2, 5), [1]);
        assert_eq!(times(Some(0), 2, 5), [4]);
        assert_eq!(times(Some(3), 4, 5), [0]);
        assert_eq!(times(Some(1), 0, 5), [4]);
        assert_eq!(times(None, 0, 1), [0; 0]);
    }

    /// Returns a view from a point on a circle around the center of the volume.
    fn from(dataset: &Dataset, turned_rad: f64) -> View {
        let view = View::first_of(dataset).unwrap();
        let volume = volume_of(&view, dataset).unwrap();
        let camera = camera_of(&view, &volume).unwrap().zoom(4.0).orbit(turned_rad, 0.0);
        View { camera: Some(shared_camera(&camera)), ..view }
    }

    #[test]
    fn a_moving_camera_is_extrapolated_and_a_resting_one_widened() {
        let dataset = data(1);
        let size = ImageSize { width: 64, height: 64 };
        let demand = |view: &View| -> BTreeSet<BlockKey> {
            let all = std::slice::from_ref(view);
            blocks_of(all, &dataset, size, 1 << 30, BTreeSet::new()).unwrap().into_iter().collect()
        };
        let (before, now, later) = (from(&dataset, 0.0), from(&dataset, 0.05), from(&dataset, 0.45));
        let next = likely_views(Some(&before), &now, &dataset).unwrap();
        let [next] = &next[..] else { panic!("{next:?}") };
        assert_eq!(demand(next), demand(&later), "after eight more changes");
        let around = likely_views(None, &now, &dataset).unwrap();
        let [around] = &around[..] else { panic!("{around:?}") };
        assert!(demand(around).is_superset(&demand(&now)) && demand(around).len() > demand(&now).len());
    }

    #[test]
    fn prefetched_blocks_take_half_of_the_memory_at_most() {
        let dataset = data(2);
        let size = ImageSize { width: 64, height: 64 };
        let views = likely_views(None, &View::first_of(&dataset).unwrap(), &dataset).unwrap();
        let volume = volume_of(&views[0], &dataset).unwrap();
        let blocks = |bytes| blocks_of(&views[..1], &dataset, size, bytes, BTreeSet::new()).unwrap();
        let all = blocks(1 << 30);
        assert_eq!(all.len(), 64);
        let bytes: usize = all.iter().map(|key| volume.pool_bytes(key)).sum();
        let some = blocks(bytes);
        assert!(some.iter().map(|key| volume.pool_bytes(key)).sum::<usize>() <= bytes / 2);
        assert_eq!(some, all[..some.len()], "the most important ones");
        assert!(some.len() > 20, "{}", some.len());
    }
}
