//! Descriptions of a server's data: one that passes its check must not harm anybody who relies on it, from the
//! grid of blocks to a volume, a first camera and the blocks that its picture needs.

use array::{ArrayInfo, Dataset, Level, Selection};
use bytes::Bytes;
use render::{Camera, ImageSize, Portion, Slice, VolumeView, demand};
use view::SpaceAxis;
use view::View;
use wire::ops::{decode_dataset, encode_dataset};

use crate::operations::settles;

/// Size of the picture.
const SIZE: ImageSize = ImageSize { width: 64, height: 48 };
/// For its blocks.
const MEMORY_BYTES: usize = 256 << 20;
/// Most arrays, and levels of each, that are looked at.
const MAX_LOOKED_AT: usize = 4;

/// Reads a description and uses it as a viewer does.
pub fn use_description(text: &[u8]) {
    settles(Bytes::copy_from_slice(text), |b| decode_dataset(&b), encode_dataset);
    let Ok(dataset) = decode_dataset(text) else { return };
    for array in dataset.arrays.iter().take(MAX_LOOKED_AT) {
        array.levels.iter().take(MAX_LOOKED_AT).for_each(check_grid);
        check_places(array);
    }
    if let Ok(view) = View::first_of(&dataset) {
        look(&dataset, &view);
    }
}

/// First and last block lie within the level, and their place in the grid leads back to them.
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
    Selection::all(&level.shape).check(&level.shape).expect("everything lies within");
}

fn check_places(array: &ArrayInfo) {
    let axes = array.axes.len();
    assert!(array.spatial_axes().into_iter().flatten().chain(array.time_axis()).all(|axis| axis < axes));
    assert!(array.level(0).is_ok());
}

/// The volume of a view, and a camera that sees all of it.
fn look(dataset: &Dataset, view: &View) {
    let Ok((array, _, position)) = view.place_in(dataset) else { return };
    let Ok(volume) = VolumeView::new(dataset, array, &position) else { return };
    let camera = Camera::framing(&volume.bounds(), Camera::DEFAULT_DIRECTION);
    camera.check().expect("the first camera of a volume looks somewhere");
    let slice = Slice { axis: SpaceAxis::Z, at: 0.0 };
    let portions = [Portion::default(), Portion { clip: None, slices: Some(vec![slice]) }];
    for (forced, portion) in [None, Some(0)].into_iter().zip(&portions) {
        let Ok(wanted) = demand(&volume, &camera, SIZE, portion, forced, MEMORY_BYTES) else { continue };
        assert!(
            wanted.blocks.iter().all(|block| volume.locate(&block.key).is_some()),
            "blocks that are none"
        );
    }
}
