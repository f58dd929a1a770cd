//! Descriptions of a server's data: one that passes its checks is safe to use, from the grid of blocks to a volume, a first
//! camera and the blocks that its picture needs.

use array::{ArrayInfo, Dataset, Level, Selection};
use bytes::Bytes;
use render::{Camera, ImageSize, Portion, Slice, VolumeView, demand};
use view::SpaceAxis;
use view::View;
use wire::ops::{decode_dataset, encode_dataset};

use crate::operations::check_round_trip;

/// Size of the picture, pixels.
const SIZE: ImageSize = ImageSize { width: 64, height: 48 };
/// Memory for its blocks.
const MEMORY_BYTES: usize = 256 << 20;
/// Most arrays, and levels of each, that are checked.
const MAX_CHECKED: usize = 4;

/// Reads a description and uses it as a viewer does.
pub fn use_description(text: &[u8]) {
    check_round_trip(Bytes::copy_from_slice(text), |b| decode_dataset(&b), encode_dataset);
    let Ok(dataset) = decode_dataset(text) else { return };
    for array in dataset.arrays.iter().take(MAX_CHECKED) {
        array.levels.iter().take(MAX_CHECKED).for_each(check_grid);
        check_axes(array);
    }
    if let Ok(view) = View::first_of(&dataset) {
        plan_picture(&dataset, &view);
    }
}

/// Checks the first, middle and last block: within the level, and found again by their position in the grid.
fn check_grid(level: &Level) {
    let count = level.block_count();
    for index in [0, count / 2, count.saturating_sub(1)] {
        let Ok(selection) = level.block_selection(index) else { continue };
        selection.check(&level.shape).expect("a block lies within its level");
        if count < u64::MAX {
            let at = level.grid_position(index).expect("as above");
            assert_eq!(level.block_index(&at), index);
        }
    }
    assert!(level.block_selection(count).is_err() || count == u64::MAX);
    Selection::all(&level.shape).check(&level.shape).expect("the whole level lies within the level");
}

/// Checks the axes and the first level of an array.
fn check_axes(array: &ArrayInfo) {
    let axes = array.axes.len();
    assert!(array.spatial_axes().into_iter().flatten().chain(array.time_axis()).all(|axis| axis < axes));
    assert!(array.level(0).is_ok());
}

/// Chooses the blocks of a view's volume for a camera that sees all of it.
fn plan_picture(dataset: &Dataset, view: &View) {
    let Ok((array, _, position)) = view.place_in(dataset) else { return };
    let Ok(volume) = VolumeView::new(dataset, array, &position) else { return };
    let camera = Camera::framing(&volume.bounds(), Camera::DEFAULT_DIRECTION);
    camera.check().expect("the first camera of a volume is legal");
    let slice = Slice::across(SpaceAxis::Z, 0.0);
    let portions = [Portion::default(), Portion { clip: None, slices: Some(vec![slice]) }];
    for (forced, portion) in [None, Some(0)].into_iter().zip(&portions) {
        let Ok(wanted) = demand(&volume, &camera, SIZE, portion, forced, MEMORY_BYTES) else { continue };
        assert!(
            wanted.blocks.iter().all(|block| volume.locate(&block.key).is_some()),
            "a block outside of the volume"
        );
    }
}
