//! Shader source: constants, atlas bindings and the parts in `shader/`.

use std::fmt::Write;

use render::device::{self, Prepared, VoxelFormat};
use view::Mode;

use crate::picture::{MAX_LEVELS, MAX_SLICES, MAX_SURFACES};

/// Most regions that a ray passes in one dispatch, which bounds its duration.
pub(crate) const REGIONS_PER_PASS: u32 = 1024;
/// Regions beyond the waiting position that a ray requests.
const REGIONS_AHEAD: u32 = 8;
/// Rays per side of a workgroup.
pub(crate) const WORKGROUP_SIDE: u32 = 8;

/// First binding of the atlases.
pub(crate) const FIRST_ATLAS: u32 = 9;

/// Properties of a compiled shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) format: VoxelFormat,
    pub(crate) is_lit: bool,
    pub(crate) is_labels: bool,
    pub(crate) draws_volume: bool,
    pub(crate) is_extreme: bool,
    pub(crate) has_solids: bool,
    pub(crate) atlases: usize,
}

const PARTS: [&str; 13] = [
    include_str!("shader/state.wgsl"),
    include_str!("shader/voxels.wgsl"),
    include_str!("shader/light.wgsl"),
    include_str!("shader/dimming.wgsl"),
    include_str!("shader/regions.wgsl"),
    include_str!("shader/march.wgsl"),
    include_str!("shader/extreme.wgsl"),
    include_str!("shader/cell.wgsl"),
    include_str!("shader/walk.wgsl"),
    include_str!("shader/search.wgsl"),
    include_str!("shader/slices.wgsl"),
    include_str!("shader/solids.wgsl"),
    include_str!("shader/cast.wgsl"),
];

impl Variant {
    /// Returns the variant that a picture needs.
    pub(crate) fn of(prepared: &Prepared, atlases: usize) -> Self {
        Self {
            format: prepared.format,
            is_lit: prepared.is_lit,
            is_labels: prepared.is_labels,
            draws_volume: prepared.mode == Mode::Composite,
            is_extreme: matches!(prepared.mode, Mode::Maximum | Mode::Minimum),
            has_solids: !(prepared.surfaces.is_empty() && prepared.slices.is_empty()),
            atlases,
        }
    }

    /// Returns the WGSL source.
    pub(crate) fn source(&self) -> String {
        let mut text = self.constants();
        let mut choice = String::new();
        for atlas in 0..self.atlases {
            let binding = FIRST_ATLAS as usize + atlas;
            put(
                &mut text,
                format_args!("@group(0) @binding({binding}) var atlas{atlas}: texture_3d<u32>;\n"),
            );
            put(
                &mut choice,
                format_args!("        case {atlas}u: {{ return textureLoad(atlas{atlas}, at, 0).r; }}\n"),
            );
        }
        put(
            &mut text,
            format_args!(
                "fn texel(atlas: u32, at: vec3u) -> u32 {{\n    switch atlas {{\n{choice}        default: {{ return 0u; }}\n    }}\n}}\n"
            ),
        );
        text + &PARTS.concat()
    }

    fn constants(&self) -> String {
        let whole = [
            ("FORMAT", self.format as u64),
            ("FORMAT_I16", VoxelFormat::I16 as u64),
            ("FORMAT_F32", VoxelFormat::F32 as u64),
            ("FORMAT_RELATIVE", VoxelFormat::Relative as u64),
            ("MAX_LEVELS", MAX_LEVELS as u64),
            ("SHOWN", MAX_LEVELS as u64 + 2),
            ("REGIONS_PER_PASS", u64::from(REGIONS_PER_PASS)),
            ("REGIONS_AHEAD", u64::from(REGIONS_AHEAD)),
            ("CELL", device::CELL as u64),
            ("BENT", u64::from(device::BENT)),
            ("RUN", u64::from(device::RUN)),
            ("ENTRIES", device::ENTRIES as u64),
            ("TABLE_WORDS", device::TABLE_WORDS as u64),
            ("FEW_PARTS", u64::from(device::PARTS[1])),
            ("MANY_PARTS", u64::from(device::PARTS[2])),
            ("SQUARINGS", u64::from(device::SQUARINGS)),
            ("MAX_SURFACES", MAX_SURFACES as u64),
            ("MAX_SLICES", MAX_SLICES as u64),
            ("COLORS", device::COLORS as u64),
            ("NO_SIDE", u64::from(device::NO_SIDE)),
            ("SEVERAL_SIDES", u64::from(device::SEVERAL_SIDES)),
        ];
        let broken = [
            ("TOLERANCE", device::TOLERANCE),
            ("ERROR_PER_BEND", device::ERROR_PER_BEND),
            ("FADE_REACH", device::FADE_REACH),
            ("NOTHING", device::NOTHING),
            ("TOP", device::TOP),
            ("ALIKE", device::ALIKE),
            ("PEAK_STEP", device::PEAK_STEP),
        ];
        let mut text = String::new();
        for (name, value) in whole {
            put(&mut text, format_args!("const {name} = {value}u;\n"));
        }
        for (name, value) in broken {
            put(&mut text, format_args!("const {name} = {value:?}f;\n"));
        }
        for (name, value) in [
            ("IS_LIT", self.is_lit),
            ("IS_LABELS", self.is_labels),
            ("DRAWS_VOLUME", self.draws_volume),
            ("IS_EXTREME", self.is_extreme),
            ("HAS_SOLIDS", self.has_solids),
        ] {
            put(&mut text, format_args!("const {name} = {value};\n"));
        }
        text
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}
