// Bindings, and the state of a ray. Constants in capitals and the atlases are written before this text (shader.rs).
//
// Positions: `volume` is in voxels of level 0, relative to an anchor near the eye, so that f32 is exact where it matters; a level's
// voxels are relative to its own integer anchor; `local` is in a block's own voxels. Samples lie at whole multiples
// of one step.

// Rays of a picture: of the pixel at (a, u), both from -1 to 1, they begin at `origin + a * origin_across + u * origin_upward`.
struct Rays {
    origin: vec3f,
    origin_across: vec3f,
    origin_upward: vec3f,
    step: vec3f,
    step_across: vec3f,
    step_upward: vec3f,
}

struct Level {
    // Voxel position from the anchor = scale * volume + shift.
    scale: vec3f,
    stride_log2: u32,
    shift: vec3f,
    is_wanted: u32,
    anchor: vec3i,
    last_voxel: vec3i,
    block: vec3i,
    last_place: vec3i,
}

// Surface, by increasing value.
struct Surface {
    // Color, premultiplied, before lighting.
    color: vec4f,
    // Place in the table.
    place: f32,
    spare_a: f32,
    spare_b: f32,
    spare_c: f32,
}

struct Slice {
    axis: u32,
    // Volume position of the plane.
    at: f32,
    spare_a: u32,
    spare_b: u32,
}

struct Picture {
    volume: Rays,
    world: Rays,
    box_low: vec3f,
    opaque: f32,
    box_high: vec3f,
    is_perspective: u32,
    clip_low: vec3f,
    has_clip: u32,
    clip_high: vec3f,
    level_count: u32,
    // Coefficients of xx, yy, zz; of xy, xz, yz.
    squares: vec3f,
    direction: f32,
    mixed_squares: vec3f,
    place_mask: u32,
    half: vec2f,
    size: vec2u,
    first_row: u32,
    row_count: u32,
    is_first_pass: u32,
    stands_in: u32,
    valid: vec2f,
    missing_at: u32,
    missing_count: u32,
    labels_at: u32,
    wanted_is_here: u32,
    // Offset of the image's middle to the right of the line of sight.
    middle: f32,
    // Each ray has samples of its own, as in `cpu/packet/spacing.rs` of `render`.
    is_thin: u32,
    // Height of extreme values = sense.x * entry + sense.y.
    sense: vec2f,
    // Index among the palette's colors = palette.x + palette.y * entry of the table.
    palette: vec2f,
    palette_at: u32,
    surface_count: u32,
    slice_count: u32,
    // True if nothing but the slices is drawn.
    slices_are_alone: u32,
    // Entry = entry_map.x + entry_map.y * logarithm of the place, if the scale is not linear.
    entry_map: vec2f,
    scale: u32,
    spare_scale: u32,
    // Ambient, diffuse and specular light.
    light: vec3f,
    // Additions to the squared length of a gradient, and to the squared part along the ray.
    soft: vec2f,
    // Share of the way through what is drawn at sample 0, and its growth per step.
    cue: vec2f,
    // Position between the centers of cells = occlusion_scale * volume + occlusion_shift.
    occlusion_scale: vec3f,
    occlusion_strength: f32,
    occlusion_shift: vec3f,
    // Steps between two lookups of the occlusion.
    lookup_steps: f32,
    occlusion_cells: vec3u,
    // First word of the cells in the table.
    occlusion_at: u32,
    cue_strength: f32,
    surfaces: array<Surface, MAX_SURFACES>,
    slices: array<Slice, MAX_SLICES>,
    levels: array<Level, MAX_LEVELS>,
}

struct Block {
    // First voxel, from the level's anchor.
    start: vec3i,
    flags: u32,
    shape: vec3u,
    gap: u32,
    // The last voxel, ghost voxels included.
    last: vec3u,
    // First word of its cells.
    field: u32,
    // Position in its atlas; NO_ATLAS if it is in none.
    texel: vec3u,
    atlas: u32,
    // Place in the table = (voxel - origin) * gain.
    origin: f32,
    gain: f32,
    level: u32,
    // Side of all its values, SEVERAL_SIDES or NO_SIDE.
    side: u32,
    // First word of its cells' sides, and of the isovalues of surfaces in the units of its voxels.
    sides: u32,
    isovalues: u32,
    // Its largest height, in pictures of extreme values.
    highest: f32,
    spare: u32,
}

// Entry of the page table, a hash table with linear probing; empty if `level` is NO_LEVEL.
struct Place {
    at: vec3i,
    level: u32,
    block: u32,
    spare_a: u32,
    spare_b: u32,
    spare_c: u32,
}

// State of a ray between dispatches.
struct Ray {
    slope: vec3f,
    before: f32,
    next: f32,
    gap: u32,
    // Flags; above their bits the number of slices tested, and of surfaces taken in
    // the cell that is searched.
    flags: u32,
    reached: f32,
    search_at: f32,
    search_exit: f32,
    search_side: u32,
    step_squared: f32,
    sheet_at: f32,
    sheet_place: f32,
    sheet_squared: f32,
    best: f32,
    search_cell: vec3i,
    search_block: u32,
}

@group(0) @binding(0) var<uniform> picture: Picture;
@group(0) @binding(1) var<storage, read> blocks: array<Block>;
@group(0) @binding(2) var<storage, read> places: array<Place>;
@group(0) @binding(3) var<storage, read> fields: array<u32>;
@group(0) @binding(4) var<storage, read> table: array<u32>;
@group(0) @binding(5) var<storage, read_write> marks: array<atomic<u32>>;
@group(0) @binding(6) var<storage, read_write> rays: array<Ray>;
@group(0) @binding(7) var<storage, read_write> counts: array<atomic<u32>>;
// Accumulated colors of rays.
@group(0) @binding(8) var<storage, read_write> colors: array<vec4f>;

const LINEAR = 0u;
const LOG = 1u;

const HAS_MISSING = 1u;
const HIDDEN = 2u;
const FULL = 4u;
const FULL_BENT = 8u;
const FADE_X = 16u;
const FADE_Y = 32u;
const FADE_Z = 64u;
const FADES = 112u;

const SEEN = 1u;
const LACKED = 2u;
const SOON = 4u;

const KNOWS_BEFORE = 1u;
const HAS_ENDED = 2u;
const IS_IN_STEP = 4u;
const SLICES_SEEN = 8u;
const SEARCH_TAKEN = 24u;

const NONE = 0xFFFFFFFFu;
const NO_ATLAS = 0xFFFFFFFFu;
const NO_LEVEL = 0xFFFFFFFFu;
// Set if known to be empty at the wanted level.
const NOT_COVERED = 0xFFFFFFFEu;
const NO_GAP = 0xFFFFFFFFu;
const FAR = 1e30;
const NEVER = 3e38;
const STILL = 1e-20;
// Place of a sample within a step, for rays with steps of their own (thin volumes).
const MIDDLE = 0.5;

// The ray.
var<private> ray_origin: vec3f;
var<private> ray_step: vec3f;
// Length of its step, as a multiple of the picture's.
var<private> step_stretch: f32;
var<private> rgba: vec4f;
// Place and slopes of the previous sample, if they are known.
var<private> before: f32;
var<private> slope: vec3f;
var<private> knows_before: bool;
// Last region of the ray.
var<private> gap: u32;
var<private> next: f32;
var<private> end: f32;
// Positions where the ray enters and leaves what is drawn, between samples.
var<private> reach: vec2f;
// The ray waits for voxels that are not in an atlas.
var<private> is_stuck: bool;
// Regions that it may still pass in this dispatch.
var<private> work_left: u32;

fn volume_at(sample: f32) -> vec3f {
    return ray_origin + ray_step * sample;
}

fn forget() {
    knows_before = false;
    slope = vec3f(0.0);
}
