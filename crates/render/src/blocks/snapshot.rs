//! Snapshot of a pool: its blocks at one moment.

use std::fmt;
use std::sync::Arc;

use crate::Scene;
use crate::blocks::BlockTable;

/// Blocks of a pool at one moment, from which a picture is cast while the pool goes on changing. They count
/// against the pool's limit as long as a snapshot holds them. Making one is cheap; clones share it.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) blocks: AnyBlockTable,
    /// Blocks of the array that gives the colors of a picture, if it is another array.
    pub(crate) color_by: Option<AnyBlockTable>,
    /// Blocks of the layers of a picture, in their order.
    pub(crate) layers: Vec<AnyBlockTable>,
}

/// Table of blocks of any element type.
#[derive(Clone)]
pub(crate) enum AnyBlockTable {
    U8(Arc<BlockTable<u8>>),
    U16(Arc<BlockTable<u16>>),
    I16(Arc<BlockTable<i16>>),
    F32(Arc<BlockTable<f32>>),
    F64(Arc<BlockTable<f64>>),
}

/// Evaluates `$body` with `$blocks` bound to the [`BlockTable`], for any element type.
macro_rules! each_blocks {
    ($any:expr, $blocks:ident => $body:expr) => {
        match $any {
            $crate::blocks::snapshot::AnyBlockTable::U8($blocks) => $body,
            $crate::blocks::snapshot::AnyBlockTable::U16($blocks) => $body,
            $crate::blocks::snapshot::AnyBlockTable::I16($blocks) => $body,
            $crate::blocks::snapshot::AnyBlockTable::F32($blocks) => $body,
            $crate::blocks::snapshot::AnyBlockTable::F64($blocks) => $body,
        }
    };
}
pub(crate) use each_blocks;

impl Snapshot {
    pub(crate) fn new(blocks: AnyBlockTable) -> Self {
        Self { blocks, color_by: None, layers: Vec::new() }
    }

    /// Adds the blocks of another pool, for scenes that take their colors from its array: see
    /// [`Scene::color_by`].
    #[must_use]
    pub fn colored_by(self, by: &Self) -> Self {
        Self { color_by: Some(by.blocks.clone()), ..self }
    }

    /// Adds the blocks of the pools of a scene's [layers](Scene::layers), in their order.
    #[must_use]
    pub fn with_layers<'a>(self, layers: impl IntoIterator<Item = &'a Self>) -> Self {
        Self { layers: layers.into_iter().map(|layer| layer.blocks.clone()).collect(), ..self }
    }

    /// Returns the index of the finest level that has a block here and is not finer than that of the scene;
    /// `None` without one.
    #[must_use]
    pub fn finest_level(&self, scene: &Scene) -> Option<u8> {
        let wanted = scene.view.level_index_of(scene.finest_level).ok()?;
        let has_blocks =
            |&level_index: &usize| each_blocks!(&self.blocks, blocks => blocks.count_at(level_index) > 0);
        let finest = (wanted..scene.view.levels.len()).find(has_blocks)?;
        Some(scene.view.levels[finest].number)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}
