//! Values that a session chooses where a view leaves them open, corrected while more of the data arrives.

use std::collections::BTreeMap;

use array::Meaning;
use view::{Transfer, ValueScale, View, ViewLayer};

use crate::viewer::view_plan::ViewPlan;

/// Share of the range of values from which on a layer has its full opacity.
const VISIBLE_FROM: f64 = 0.25;

/// Value that was chosen for a field of a view.
pub(crate) struct ChosenValue<T> {
    pub(crate) value: T,
    /// Number of voxels of level 0 that the value is based on.
    voxels: f64,
}

impl<T: PartialEq> ChosenValue<T> {
    /// Returns a better value than the one that a view has `now`; `None` if that one was not chosen, or
    /// if no better one is known. Corrections visibly change the picture, so each must be based on many more
    /// voxels than the last.
    pub(crate) fn better(
        known: Option<&Self>,
        now: Option<&T>,
        sensible: impl FnOnce() -> Option<(f64, T)>,
        is_settled: bool,
    ) -> Option<Self> {
        let known = match (now, known) {
            (None, _) => 0.0,
            (Some(now), Some(chosen)) if *now == chosen.value => chosen.voxels,
            _ => return None,
        };
        let (voxels, value) = sensible()?;
        let is_better = known == 0.0 || voxels >= 2.0 * known || is_settled && voxels > known;
        is_better.then_some(Self { value, voxels })
    }
}

/// Returns the transfer function for the values of a layer that have arrived; that of labels has their
/// colors.
pub(crate) fn sensible_layer_transfer(transfer: Transfer, meaning: Meaning) -> Transfer {
    if meaning != Meaning::Intensity {
        return transfer;
    }
    // Over another array the lowest values are left out, so that what is below can be seen.
    let [low, high] = transfer.range;
    let hides_something = transfer.opacity.iter().any(|&[_, opacity]| opacity <= 0.0);
    if hides_something || transfer.scale != ValueScale::Linear {
        return transfer;
    }
    let strongest = transfer.opacity.iter().map(|point| point[1]).fold(0.0, f64::max);
    let middle = low + (high - low) * VISIBLE_FROM;
    Transfer { opacity: vec![[low, 0.0], [middle, strongest], [high, strongest]], ..transfer }
}

/// Returns the layers of a view with better transfer functions, where these were left to be chosen; `None` if
/// there are none.
pub(crate) fn chosen_layers(
    chosen: &mut BTreeMap<String, ChosenValue<Transfer>>,
    view: &View,
    view_plan: &ViewPlan,
    is_settled: bool,
) -> Option<Vec<ViewLayer>> {
    let mut layers = view.layers.clone();
    // Those of layers that are gone are forgotten, so that there are no more than layers.
    chosen.retain(|name, _| layers.iter().any(|layer| layer.array.as_ref() == Some(name)));
    let mut has_better = false;
    for (planned, subscription) in view_plan.layers.iter().zip(&view_plan.subscription.layers) {
        let Some(layer) = layers.get_mut(planned.layer) else { continue };
        let Some(name) = layer.array.clone() else { continue };
        let volume = &subscription.volume;
        let sensible = || {
            let (voxels, transfer) = volume.sensible_transfer()?;
            Some((voxels, sensible_layer_transfer(transfer, volume.view.meaning)))
        };
        let better = ChosenValue::better(chosen.get(&name), layer.transfer.as_ref(), sensible, is_settled);
        if let Some(better) = better {
            has_better |= layer.transfer.as_ref() != Some(&better.value);
            layer.transfer = Some(better.value.clone());
            chosen.insert(name, better);
        }
    }
    has_better.then_some(layers)
}
