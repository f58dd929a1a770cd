// Search for surfaces along a ray: region by region, cell by cell, front to back, as in `isosurface/hits` of `render`.
//
// The ray keeps the side on which its last value was: the number of surfaces with no higher value. Where the side
// changes, surfaces are crossed, one after another; so the sides determine the next one, and the number taken in a
// cell determines where to continue.

// Distance ahead at which regions are looked up, so that a ray on a wall is in the region it enters; steps, and a share of the distance.
const AHEAD = 1e-5;
const AHEAD_SHARE = 5e-7;

// Hit of a ray.
struct Hit {
    // Position in steps of the ray; NEVER if there is no further hit.
    at: f32,
    // Place of the value there, in the table.
    place: f32,
    // Squared cosine between the gradient there and the ray.
    squared: f32,
    // Color, lit, premultiplied.
    color: vec4f,
}

// Range that was searched and that is to be searched, in steps.
var<private> search_at: f32;
var<private> search_end: f32;
// Side at `search_at`; NO_SIDE at the beginning and behind missing values.
var<private> search_side: u32;
// Cell of the last hit, its block, its end, and the number of its surfaces that were taken.
var<private> search_cell: vec3i;
var<private> search_block: u32;
var<private> search_exit: f32;
var<private> search_taken: u32;
// Last hit.
var<private> hit: Hit;

fn isovalue(block: Block, surface: u32) -> f32 {
    return bitcast<f32>(table[block.isovalues + surface]);
}

// Side of a value, relative to `base`.
fn side_of(block: Block, value: f32, base: f32) -> u32 {
    var side = 0u;
    for (var i = 0u; i < picture.surface_count; i++) {
        side += select(0u, 1u, value >= isovalue(block, i) - base);
    }
    return side;
}

// True if no surface lies between the ray's last value and those of this side.
fn is_alike(side: u32) -> bool {
    return side == NO_SIDE || side < SEVERAL_SIDES && (search_side == NO_SIDE || search_side == side);
}

// Passes values of one side up to `exit`.
fn pass_side(block: Block, side: u32, exit: f32) {
    search_side = select(side, NO_SIDE, (block.flags & HAS_MISSING) != 0u);
    search_at = max(search_at, exit);
    search_taken = 0u;
}

// Continues until a hit is found; false if there is none up to `search_at`.
fn search_surfaces() -> bool {
    while search_at < search_end && work_left > 0u {
        work_left--;
        // First the rest of a cell of which some surfaces were taken.
        let resumes = search_taken > 0u;
        var number = search_block;
        var exit = search_exit;
        if !resumes {
            let ahead = search_at + max(AHEAD, abs(search_at) * AHEAD_SHARE);
            let region = region_from(0u, volume_at(ahead), FOR_SEARCH);
            if is_stuck {
                return false;
            }
            number = region.block;
            exit = min(max(region.exit, ahead), search_end);
        }
        if number == NONE {
            search_side = NO_SIDE;
            search_at = exit;
            continue;
        }
        if !resumes && is_alike(blocks[number].side) {
            pass_side(blocks[number], blocks[number].side, exit);
            continue;
        }
        if !has_voxels(number) {
            lack(number);
            if is_stuck {
                return false;
            }
            search_side = NO_SIDE;
            search_at = max(search_at, exit);
            search_taken = 0u;
            continue;
        }
        mark(number, SEEN);
        if find_in_block(number, exit, resumes) {
            return true;
        }
    }
    return false;
}

// Searches a block up to `exit`, until a hit is found; if resumed, first the cell of the last hit.
fn find_in_block(number: u32, exit: f32, resumes: bool) -> bool {
    let block = blocks[number];
    let local = Local(local_of(block, ray_origin), ray_step * picture.levels[block.level].scale);
    let last = vec3i((block.shape - 1u) / CELL);
    var large = walk_from(local, search_at, f32(CELL), vec3i(0), last);
    var large_exits = exits(local, large);
    var small = Walk(search_cell, 1.0, search_cell, search_cell);
    var is_within = resumes;
    // Large cells, and the voxels of those that may hold a surface, in one loop: what is written twice is compiled twice.
    while search_at < exit || search_taken > 0u {
        let end = select(min(least(large_exits), exit), exit, resumes);
        if !is_within {
            let side = byte_at(block, block.sides, vec3u(large.at));
            if is_alike(side) {
                pass_side(block, side, end);
                large = stepped(local, large, large_exits);
                large_exits = exits(local, large);
                continue;
            }
            // The outermost cells of a block that samples beyond its voxels belong to are one farther out.
            let low = large.at * i32(CELL);
            let high = low + i32(CELL) - 1;
            let lowest = select(low, vec3i(-1), large.at == vec3i(0));
            let highest = select(high, vec3i(block.shape), large.at == last);
            small = walk_from(local, search_at, 1.0, lowest, highest);
            is_within = true;
        }
        let small_exits = exits(local, small);
        let out = min(least(small_exits), end);
        if find_in_cell(block, local, small.at, out) {
            search_cell = small.at;
            search_block = number;
            search_exit = out;
            return true;
        }
        search_at = max(search_at, out);
        search_taken = 0u;
        small = stepped(local, small, small_exits);
        if search_at >= end {
            is_within = false;
            large = stepped(local, large, large_exits);
            large_exits = exits(local, large);
        }
    }
    return false;
}

// Searches one cell between here and `exit` for the next hit; without one, the ray's side becomes that at `exit`.
fn find_in_cell(block: Block, local: Local, cell: vec3i, exit: f32) -> bool {
    let raw = corners_of(block, cell);
    let base = value_of(raw[0]);
    var values: array<f32, 8>;
    var low = NEVER;
    var high = -NEVER;
    for (var i = 0u; i < 8u; i++) {
        if (block.flags & HAS_MISSING) != 0u && !is_there(raw[i]) {
            search_side = NO_SIDE;
            return false;
        }
        values[i] = value_of(raw[i]) - base;
        low = min(low, values[i]);
        high = max(high, values[i]);
    }
    let lowest = side_of(block, low, base);
    let highest = side_of(block, high, base);
    if lowest == highest && (search_side == NO_SIDE || search_side == lowest) {
        search_side = lowest;
        return false;
    }
    let start = fma(local.step, vec3f(search_at), local.origin) - vec3f(cell);
    let c = cubic_of(values, start, local.step);
    var pieces = pieces_of(c, max(exit - search_at, 0.0));
    var side = search_side;
    var left = search_taken;
    for (var i = 0u; i < pieces.count; i++) {
        let behind = clamp(side_of(block, cubic_at(c, pieces.ends[i]), base), lowest, highest);
        if side == NO_SIDE {
            side = behind;
        }
        let crossed = max(side, behind) - min(side, behind);
        if left >= crossed {
            left -= crossed;
            side = behind;
            continue;
        }
        // A step between two cells crosses its surfaces at once, the highest first; else the value passes one by one.
        var surface = max(side, behind) - 1u - left;
        var s = 0.0;
        if i > 0u {
            if behind > side {
                surface = rising(block, side, behind, left);
            }
            s = crossing(c, isovalue(block, surface) - base, pieces.ends[i - 1u], pieces.ends[i]);
        }
        note(surface, s, gradient_of(values, clamp(fma(local.step, vec3f(s), start), vec3f(0.0), vec3f(1.0))), block);
        return true;
    }
    search_side = side;
    return false;
}

// Next surface of a value that rises from one side to another, of which `taken` were taken; of surfaces with one value the
// last comes first.
fn rising(block: Block, side: u32, behind: u32, taken: u32) -> u32 {
    let next = side + taken;
    let value = isovalue(block, next);
    var first = next;
    var last = next;
    while first > side && isovalue(block, first - 1u) == value {
        first--;
    }
    while last + 1u < behind && isovalue(block, last + 1u) == value {
        last++;
    }
    return first + last - next;
}

// Records a hit at this number of steps behind `search_at`.
fn note(surface: u32, s: f32, gradient: vec3f, block: Block) {
    // Scaled first to avoid overflow: only the direction matters.
    let most = max(abs(gradient.x), max(abs(gradient.y), abs(gradient.z)));
    let scaled = gradient / select(most, 1.0, most == 0.0) * picture.levels[block.level].scale;
    hit.at = search_at + s;
    hit.place = picture.surfaces[surface].place;
    hit.squared = squared_cosine(scaled);
    hit.color = lit(picture.surfaces[surface].color, light_of(hit.squared) * cue_at(hit.at));
}
