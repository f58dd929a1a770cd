//! Planning of a view: the blocks that its picture needs within one participant's share of the memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{Dataset, Error, Priority, Result};
use render::{
    Camera, Demand, ImageSize, LightShares, Portion, Quality, Scene, SceneGeometry, ViewLevel, VolumeView,
    stereo,
};
use serde::{Deserialize, Serialize};
use session::ParticipantId;
use view::View;

use crate::loading::feed::Feed;
use crate::loading::volume::{VolumeSubscription, Volumes};
use crate::viewer::layers::{array_layer_of, layer_data, layer_portion, layer_volumes_of};
use crate::viewer::scene::{
    any_transfer, camera_for, color_by_of, color_by_volume_of, portion_of, size_of_eye, slices_of,
    surfaces_of, transfer_of, volume_of,
};

/// View prepared for drawing.
pub(crate) struct ViewPlan {
    /// Description of the data set when the plan was made.
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) view: Arc<View>,
    pub(crate) size: ImageSize,
    /// Memory that this participant may use for blocks, bytes.
    pub(crate) share_bytes: usize,
    /// Limit within which the blocks were chosen, bytes: with several ranks the memory of all of them
    /// together.
    pub(crate) most_bytes: usize,
    pub(crate) subscription: VolumeSubscription,
    pub(crate) demand: Arc<Demand>,
    /// Demand for the array that gives the colors, if that is another one.
    pub(crate) color_by: Option<ColorByDemand>,
    /// Demands for the arrays of layers, in the order of their subscriptions.
    pub(crate) layers: Vec<LayerDemand>,
    pub(crate) camera: Camera,
    pub(crate) portion: Portion,
}

/// Demand of a picture for the array of a layer.
pub(crate) struct LayerDemand {
    /// Index of the layer in the view.
    pub(crate) layer: usize,
    pub(crate) demand: Arc<Demand>,
}

/// Demand of a picture for the array that gives its colors.
pub(crate) struct ColorByDemand {
    pub(crate) demand: Arc<Demand>,
    /// Limit within which its blocks were chosen, bytes.
    pub(crate) most_bytes: usize,
}

/// Limit of the demand of a view.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DemandLimit {
    /// Memory of this number of hosts like this one.
    Memory { hosts: usize },
    /// Levels that another rank chose, for the array shown and for the one that gives the colors.
    Given { own: LevelChoice, color_by: Option<LevelChoice> },
}

/// Level that was chosen for an array.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LevelChoice {
    /// Number of the level that memory and screen allow.
    pub(crate) number: u8,
    /// Limit within which blocks were chosen, bytes.
    pub(crate) most_bytes: usize,
}

impl ViewPlan {
    /// Plans `view` for `who` and requests the missing blocks; `old` is their previous subscription. Blocks
    /// the thread.
    ///
    /// # Errors
    /// `Invalid` and others for a view that does not fit the data set.
    pub(crate) fn new(
        volumes: &Arc<Volumes>,
        feed: &Feed,
        dataset: Arc<Dataset>,
        who: ParticipantId,
        view: Arc<View>,
        size: ImageSize,
        old: Option<VolumeSubscription>,
    ) -> Result<Self> {
        let view_plan =
            Self::prepare(volumes, dataset, who, view, size, old, DemandLimit::Memory { hosts: 1 })?;
        view_plan.request_blocks(feed, who);
        Ok(view_plan)
    }

    /// Plans a view within `demand_limit` without requesting its blocks. Blocks the thread.
    ///
    /// # Errors
    /// Those of [`ViewPlan::new`].
    pub(crate) fn prepare(
        volumes: &Arc<Volumes>,
        dataset: Arc<Dataset>,
        who: ParticipantId,
        view: Arc<View>,
        size: ImageSize,
        old: Option<VolumeSubscription>,
        demand_limit: DemandLimit,
    ) -> Result<Self> {
        let volume = volume_of(&view, &dataset)?;
        let camera = camera_for(&view, &volume, size)?;
        let portion = portion_of(&view, &volume);
        let color_by_volume = color_by_volume_of(&view, &dataset)?;
        // Old subscriptions are dropped after the new ones exist, so that their number does not change in
        // between.
        let mut old: Vec<VolumeSubscription> = old.into_iter().flat_map(VolumeSubscription::split).collect();
        let mut subscribe =
            |volume: &Arc<VolumeView>| match old.iter().position(|old| *old.volume.view == **volume) {
                Some(same) => Ok(old.swap_remove(same)),
                None => volumes.subscribe(who, &dataset, Arc::clone(volume)),
            };
        let mut subscription = subscribe(&volume)?;
        subscription.color_by =
            color_by_volume.as_ref().map(|color_by| subscribe(color_by).map(Box::new)).transpose()?;
        // Several ranks draw no layers.
        let layer_volumes = match demand_limit {
            DemandLimit::Memory { hosts: 1 } => layer_volumes_of(&view, &volume, &dataset)?,
            _ => Vec::new(),
        };
        subscription.layers =
            layer_volumes.iter().map(|layer| subscribe(&layer.view)).collect::<Result<_>>()?;
        let share_bytes = volumes.divide_memory();
        let layers = layer_volumes.iter().map(|layer| {
            let portion = layer_portion(&portion, &volume, &layer.view);
            let level = layer_level(&view, &volume, &layer.view);
            let demand = picture_demand(&view, &layer.view, (&camera, size), &portion, level, share_bytes)?;
            Ok(LayerDemand { layer: layer.layer, demand: Arc::new(demand) })
        });
        let layers = layers.collect::<Result<Vec<_>>>()?;
        let all_bytes = |hosts: usize| share_bytes.saturating_mul(hosts);
        let (level, most_bytes) = match demand_limit {
            DemandLimit::Memory { hosts } => (view.level, all_bytes(hosts)),
            DemandLimit::Given { own, .. } => (Some(own.number), own.most_bytes),
        };
        let demand = picture_demand(&view, &volume, (&camera, size), &portion, level, most_bytes)?;
        let color_by = color_by_volume.map(|volume| {
            let (level, most_bytes) = match demand_limit {
                DemandLimit::Memory { hosts } => {
                    (level_in(&view, &subscription.volume.view, &volume), all_bytes(hosts))
                }
                DemandLimit::Given { color_by: Some(color_by), .. } => {
                    (Some(color_by.number), color_by.most_bytes)
                }
                DemandLimit::Given { color_by: None, .. } => {
                    return Err(Error::internal("no level was chosen for the array that gives the colors"));
                }
            };
            let demand = picture_demand(&view, &volume, (&camera, size), &portion, level, most_bytes)?;
            Ok(ColorByDemand { demand: Arc::new(demand), most_bytes })
        });
        let (demand, color_by) = (Arc::new(demand), color_by.transpose()?);
        Ok(Self {
            dataset,
            view,
            size,
            share_bytes,
            most_bytes,
            subscription,
            demand,
            color_by,
            layers,
            camera,
            portion,
        })
    }

    /// Demands what fits `most_bytes`, at a coarser level if necessary.
    ///
    /// # Errors
    /// Those of [`render::demand_of`].
    pub(crate) fn demand_within(&mut self, most_bytes: usize) -> Result<()> {
        let (volume, level) = (&self.subscription.volume.view, self.view.level);
        let demand =
            picture_demand(&self.view, volume, (&self.camera, self.size), &self.portion, level, most_bytes)?;
        (self.demand, self.most_bytes) = (Arc::new(demand), most_bytes);
        Ok(())
    }

    /// Demands of the array that gives the colors, if that is another one, what fits `most_bytes`, at a
    /// coarser level if necessary.
    ///
    /// # Errors
    /// Those of [`render::demand_of`].
    pub(crate) fn demand_color_by_within(&mut self, most_bytes: usize) -> Result<()> {
        let Some(color_by) = &self.subscription.color_by else { return Ok(()) };
        let volume = &color_by.volume.view;
        let level = level_in(&self.view, &self.subscription.volume.view, volume);
        let demand =
            picture_demand(&self.view, volume, (&self.camera, self.size), &self.portion, level, most_bytes)?;
        self.color_by = Some(ColorByDemand { demand: Arc::new(demand), most_bytes });
        Ok(())
    }

    /// Lowers the priorities of its blocks below those of viewers, in the same order.
    pub(crate) fn lower_priorities(&mut self) {
        let color_by = self.color_by.as_mut().map(|color_by| &mut color_by.demand);
        let layers = self.layers.iter_mut().map(|layer| &mut layer.demand);
        for demand in std::iter::once(&mut self.demand).chain(color_by).chain(layers) {
            for block in &mut Arc::make_mut(demand).blocks {
                let is_first = block.priority.tier > Priority::NORMAL.tier;
                let tier = if is_first { Priority::PREFETCH } else { Priority::BACKGROUND };
                block.priority = tier.weighted(block.priority.weight);
            }
        }
    }

    /// Requests the missing blocks of its demand. Blocks the thread.
    pub(crate) fn request_blocks(&self, feed: &Feed, who: ParticipantId) {
        let color_by = self.color_by.as_ref().map(|color_by| &color_by.demand);
        let layers: Vec<Arc<Demand>> = self.layers.iter().map(|layer| Arc::clone(&layer.demand)).collect();
        feed.request(who, || self.subscription.set_demands(&self.demand, color_by, &layers));
    }

    /// Returns the levels chosen for the array shown and for the one that gives the colors.
    pub(crate) fn level_choices(&self) -> (LevelChoice, Option<LevelChoice>) {
        let own = LevelChoice { number: self.demand.wanted, most_bytes: self.most_bytes };
        let level_choice = |color_by: &ColorByDemand| LevelChoice {
            number: color_by.demand.wanted,
            most_bytes: color_by.most_bytes,
        };
        (own, self.color_by.as_ref().map(level_choice))
    }

    /// Returns the volume that gives the colors, and its demand.
    pub(crate) fn color_by_demand(&self) -> Option<(&Arc<VolumeView>, &Demand)> {
        let (subscription, color_by) = self.subscription.color_by.as_ref().zip(self.color_by.as_ref())?;
        Some((&subscription.volume.view, &color_by.demand))
    }

    /// Returns the number of blocks demanded.
    pub(crate) fn blocks_total(&self) -> u64 {
        let color_by = self.color_by.iter().map(|color_by| &color_by.demand);
        let others = color_by.chain(self.layers.iter().map(|layer| &layer.demand));
        others.chain([&self.demand]).map(|demand| demand.blocks.len() as u64).sum()
    }

    /// Returns the number of the array in the description.
    pub(crate) fn array(&self) -> u32 {
        self.subscription.volume.view.key(0, [0; 3]).array
    }

    /// Returns whether the volume of a view of this array is shaded.
    ///
    /// # Errors
    /// `NotFound` for an array that is gone.
    pub(crate) fn is_shaded(&self, view: &View) -> Result<bool> {
        Ok(view.is_shaded(self.dataset.array(self.array())?))
    }

    /// Returns the scene with the transfer function and the colors of `view`; a view without a transfer
    /// function gets a default one.
    pub(crate) fn scene(&self, view: &View) -> Result<Scene> {
        let color_by = view.color_by.as_ref().zip(self.color_by_demand());
        let color_by = color_by.map(|(by, (volume, demand))| color_by_of(by, volume, demand.wanted));
        let layers = self.layers.iter().zip(&self.subscription.layers).map(|(layer, subscription)| {
            let own = view.layers.get(layer.layer).unwrap_or(&self.view.layers[layer.layer]);
            array_layer_of(own, &subscription.volume.view, layer.demand.wanted)
        });
        Ok(Scene {
            view: Arc::clone(&self.subscription.volume.view),
            camera: self.camera,
            transfer: transfer_of(view.transfer.as_ref().unwrap_or(&any_transfer()))?,
            color_by,
            layers: layers.collect::<Result<_>>()?,
            surfaces: surfaces_of(view),
            slices: slices_of(view, &self.subscription.volume.view),
            wires: Arc::default(),
            geometry: SceneGeometry::default(),
            mode: view.mode,
            is_lit: self.is_shaded(view)?,
            light: LightShares::new(view.lighting, view.occlusion, view.depth_cue),
            size: self.size,
            clip: self.portion.clip,
            quality: Quality::STILL,
            finest_level: self.demand.wanted,
        })
    }

    /// Returns true if this plan also serves another view and size: the same blocks from the same camera.
    pub(crate) fn serves(&self, dataset: &Arc<Dataset>, view: &View, size: ImageSize) -> bool {
        let old = &*self.view;
        self.size == size
            && Arc::ptr_eq(&self.dataset, dataset)
            && (&old.array, old.time, &old.at, old.level) == (&view.array, view.time, &view.at, view.level)
            && (&old.camera, old.stereo) == (&view.camera, view.stereo)
            && color_by_position(old) == color_by_position(view)
            && layer_data(old) == layer_data(view)
            && self.portion == portion_of(view, &self.subscription.volume.view)
    }
}

/// Returns the array that gives a view its colors, and the indices on its other axes; `None` where the view
/// has no such array.
fn color_by_position(view: &View) -> Option<(&String, &BTreeMap<String, u64>)> {
    view.color_by.as_ref().map(|by| (&by.array, &by.at))
}

/// Returns the level of the array that gives the colors with the resolution of the level that a view
/// requests, if there is one.
pub(crate) fn level_in(view: &View, own: &VolumeView, color_by: &VolumeView) -> Option<u8> {
    let asked = own.levels.iter().find(|level| Some(level.number) == view.level)?;
    let is_alike = |level: &&ViewLevel| {
        level.factor.abs_diff_eq(asked.factor, 1e-6)
            && level.origin.is_quick_look() == asked.origin.is_quick_look()
    };
    color_by.levels.iter().find(is_alike).map(|level| level.number)
}

/// Returns the level of the array of a layer with the resolution of the level that a view requests: the
/// coarsest with voxels no larger than those; `None` if the view requests none.
pub(crate) fn layer_level(view: &View, own: &VolumeView, layer: &VolumeView) -> Option<u8> {
    let asked = own.levels.iter().position(|level| Some(level.number) == view.level)?;
    let size = own.spacing_world(asked) * (1.0 + 1e-6);
    let mut fine = (0..layer.levels.len()).filter(|&index| layer.spacing_world(index) <= size);
    let chosen = fine.next_back().unwrap_or(0);
    layer.levels.get(chosen).map(|level| level.number)
}

/// Returns the blocks that a picture of a view needs, or both pictures of a stereo pair.
///
/// `volume` is the one that the view shows or the one that gives its colors.
///
/// # Errors
/// Those of [`render::demand_of`] and [`stereo::eyes`].
pub(crate) fn picture_demand(
    view: &View,
    volume: &VolumeView,
    (camera, size): (&Camera, ImageSize),
    portion: &Portion,
    level: Option<u8>,
    most_bytes: usize,
) -> Result<Demand> {
    let seen = size_of_eye(view, size);
    match view.stereo {
        None => render::demand(volume, camera, seen, portion, level, most_bytes),
        Some(parallax) => {
            render::demand_of(volume, &stereo::eyes(camera, parallax)?, seen, portion, level, most_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use array::conformance::{MemorySource, one_array};
    use array::{Level, LevelOrigin};

    use super::*;
    use crate::viewer::shared::SharedState;

    /// Makes a session on bytes in levels of 64^3, 32^3 (samples and means) and 16^3 voxels.
    fn shared(memory_bytes: u64) -> SharedState {
        let mut dataset = one_array("|u1".parse().unwrap(), &[64; 3], &[16; 3]);
        let finest = dataset.arrays[0].levels[0].clone();
        let mut elements = vec![vec![7u8; 64 * 64 * 64].into()];
        let coarser = [(2u64, LevelOrigin::Sampled), (2, LevelOrigin::Mean), (4, LevelOrigin::Sampled)];
        for (factor, origin) in coarser {
            let side = 64 / factor;
            dataset.arrays[0].levels.push(Level {
                shape: vec![side; 3],
                block: vec![16; 3],
                chunk: None,
                origin,
                factor: vec![factor as f64; 3],
                world_from_voxel: finest.world_from_voxel.coarsened([factor as f64; 3], [0.0; 3]),
            });
            elements.push(
                std::iter::repeat_n(7u8, usize::try_from(side.pow(3)).unwrap()).collect::<Vec<_>>().into(),
            );
        }
        let source = MemorySource::new(dataset.clone(), vec![elements]).unwrap();
        let view = View::first_of(&dataset).unwrap();
        SharedState::new(Arc::new(dataset), Arc::new(source), memory_bytes.into(), view, Arc::new(|_| None))
    }

    #[test]
    fn a_given_level_choice_gives_the_same_blocks() {
        let size = ImageSize { width: 32, height: 32 };
        let look = |shared: &SharedState, demand_limit| {
            let view = View { level: Some(2), ..View::first_of(&shared.dataset()).unwrap() };
            ViewPlan::prepare(
                &shared.volumes,
                shared.dataset(),
                ParticipantId(0),
                Arc::new(view),
                size,
                None,
                demand_limit,
            )
            .unwrap()
        };
        let roomy = look(&shared(64 << 20), DemandLimit::Memory { hosts: 1 });
        // Memory for the means, but not for the samples that would be shown before them.
        let memory_bytes = roomy.demand.pool_bytes as u64;
        let tight = shared(memory_bytes);
        let first = look(&tight, DemandLimit::Memory { hosts: 1 });
        assert!(first.demand.blocks.len() < roomy.demand.blocks.len(), "memory limits the demand");
        let own = LevelChoice { number: first.demand.wanted, most_bytes: first.most_bytes };
        let told = DemandLimit::Given { own, color_by: None };
        let other = look(&shared(64 << 20), told);
        assert_eq!(other.demand.blocks, first.demand.blocks);
    }

    #[test]
    fn pictures_in_the_background_request_their_layers_after_viewers_too() {
        let mut dataset = one_array("|u1".parse().unwrap(), &[32; 3], &[16; 3]);
        let mut seg = dataset.arrays[0].clone();
        seg.name = "seg".into();
        dataset.arrays.push(seg);
        let elements = || vec![vec![7u8; 32 * 32 * 32].into()];
        let source = MemorySource::new(dataset.clone(), vec![elements(), elements()]).unwrap();
        let layers = vec![view::ViewLayer { array: Some("seg".into()), ..view::ViewLayer::default() }];
        let view = View { layers, ..View::first_of(&dataset).unwrap() };
        let shared = SharedState::new(
            Arc::new(dataset),
            Arc::new(source),
            (64u64 << 20).into(),
            view.clone(),
            Arc::new(|_| None),
        );
        let mut view_plan = ViewPlan::prepare(
            &shared.volumes,
            shared.dataset(),
            ParticipantId(0),
            Arc::new(view),
            ImageSize { width: 32, height: 32 },
            None,
            DemandLimit::Memory { hosts: 1 },
        )
        .unwrap();
        view_plan.lower_priorities();
        let layer = &view_plan.layers[0].demand.blocks;
        assert!(!layer.is_empty());
        let all = view_plan.demand.blocks.iter().chain(layer);
        assert!(all.into_iter().all(|block| block.priority.tier < Priority::NORMAL.tier));
    }
}
