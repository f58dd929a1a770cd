// Lookup of blocks by position.

// Box in which every position has the same result.
struct Region {
    // Sample, not whole, at which the ray leaves the box.
    exit: f32,
    // Finest block that can be drawn, or NONE.
    block: u32,
    level: u32,
    is_lacking: bool,
}

fn hash(at: vec3i, level: u32) -> u32 {
    let p = bitcast<vec3u>(at) * vec3u(73856093u, 19349663u, 83492791u);
    let h = (p.x ^ p.y ^ p.z ^ (level * 2654435769u)) * 2246822519u;
    return h ^ (h >> 15u);
}

fn block_at(level: u32, at: vec3i) -> u32 {
    var i = hash(at, level) & picture.place_mask;
    while places[i].level != NO_LEVEL {
        if places[i].level == level && all(places[i].at == at) {
            return places[i].block;
        }
        i = (i + 1u) & picture.place_mask;
    }
    return NONE;
}

// Position in a level's grid of the block that contains a volume position.
fn place_of(level: u32, volume: vec3f) -> vec3i {
    let voxel = fma(volume, picture.levels[level].scale, picture.levels[level].shift);
    let cell = vec3i(clamp(floor(voxel), vec3f(-1e9), vec3f(1e9))) + picture.levels[level].anchor;
    return clamp(cell, vec3i(0), picture.levels[level].last_voxel) / picture.levels[level].block;
}

fn local_of(block: Block, volume: vec3f) -> vec3f {
    let level = block.level;
    return fma(volume, picture.levels[level].scale, picture.levels[level].shift) - vec3f(block.start);
}

// Sample at which the ray leaves the block at a position in a level's grid.
fn exit_of(level: u32, at: vec3i) -> f32 {
    let start = fma(ray_origin, picture.levels[level].scale, picture.levels[level].shift);
    let along = ray_step * picture.levels[level].scale;
    let low = at * picture.levels[level].block - picture.levels[level].anchor;
    let high = low + picture.levels[level].block;
    var exit = NEVER;
    for (var axis = 0u; axis < 3u; axis++) {
        let forward = along[axis] > 0.0;
        // There are no further blocks beyond the outermost ones.
        let is_open = select(at[axis] == 0, at[axis] == picture.levels[level].last_place[axis], forward);
        if along[axis] == 0.0 || is_open {
            continue;
        }
        let wall = f32(select(low[axis], high[axis], forward));
        exit = min(exit, (wall - start[axis]) / along[axis]);
    }
    return exit;
}

fn mark(block: u32, as_what: u32) {
    if (atomicLoad(&marks[block]) & as_what) == 0u {
        atomicOr(&marks[block], as_what);
    }
}

fn has_voxels(block: u32) -> bool {
    return blocks[block].atlas != NO_ATLAS;
}

// Requests voxels that are not in an atlas; the ray waits, unless another block is drawn instead.
fn lack(block: u32) {
    mark(block, LACKED);
    is_stuck = picture.stands_in == 0u;
}

// Purpose for which a ray looks up a region.
const FOR_MARCH = 0u;
const FOR_SEARCH = 1u;
const FOR_CLIMB = 2u;
const FOR_COUNT = 3u;
const FOR_VOXELS = 4u;

// Pass of the ray through the volume for which blocks are looked up.
fn for_pass() -> u32 {
    if DRAWS_VOLUME {
        return FOR_MARCH;
    }
    return select(FOR_COUNT, FOR_CLIMB, IS_EXTREME);
}

// True if the voxels of a block are not needed: the transfer function shows nothing of it (and no interval leads to it), no
// surface lies in it, it is not higher than the best height, or only its level is requested.
fn is_of_no_use(block: u32, purpose: u32) -> bool {
    switch purpose {
        case FOR_MARCH: { return (blocks[block].flags & HIDDEN) != 0u; }
        case FOR_SEARCH: { return is_alike(blocks[block].side); }
        case FOR_CLIMB: { return (blocks[block].flags & FADES) == 0u && !may_rise(blocks[block]); }
        case FOR_COUNT: { return picture.stands_in == 0u || blocks[block].side != SEVERAL_SIDES; }
        default: { return false; }
    }
}

// Finds the region, with blocks of level number `first` and coarser.
fn region_from(first: u32, volume: vec3f, purpose: u32) -> Region {
    var found = Region(NEVER, NONE, 0u, picture.wanted_is_here == 0u);
    var was_lacking = false;
    for (var level = first; level < picture.level_count; level++) {
        let at = place_of(level, volume);
        found.exit = min(found.exit, exit_of(level, at));
        let block = block_at(level, at);
        let is_wanted = picture.levels[level].is_wanted != 0u;
        if block == NONE || block == NOT_COVERED {
            found.is_lacking = found.is_lacking || is_wanted && block == NONE;
            continue;
        }
        if has_voxels(block) || is_of_no_use(block, purpose) {
            found.block = block;
            found.level = level;
            return found;
        }
        lack(block);
        found.is_lacking = found.is_lacking || is_wanted;
        was_lacking = true;
        if is_stuck {
            return found;
        }
    }
    // Nothing is drawn instead: waiting is better than a hole.
    is_stuck = was_lacking;
    return found;
}

fn fades(block: Block, local: vec3f) -> bool {
    let along = vec3<bool>((block.flags & FADE_X) != 0u, (block.flags & FADE_Y) != 0u, (block.flags & FADE_Z) != 0u);
    return any(along & (local < vec3f(FADE_REACH)));
}

// Value in the transition from a coarser level to the block's own.
fn faded(block: Block, local: vec3f, volume: vec3f) -> Found {
    var own = find_whole(block, local, picture.levels[block.level].scale);
    if !own.is_there {
        return own;
    }
    let coarser = region_from(block.level + 1u, volume, FOR_MARCH);
    if is_stuck || coarser.block == NONE {
        return own;
    }
    if !has_voxels(coarser.block) {
        lack(coarser.block);
        return own;
    }
    mark(coarser.block, SEEN);
    let other = blocks[coarser.block];
    let behind = find_whole(other, local_of(other, volume), picture.levels[other.level].scale);
    if behind.is_there {
        let along = vec3<bool>((block.flags & FADE_X) != 0u, (block.flags & FADE_Y) != 0u, (block.flags & FADE_Z) != 0u);
        let shares = select(vec3f(1.0), local / FADE_REACH, along);
        let share = clamp(min(shares.x, min(shares.y, shares.z)), 0.0, 1.0);
        own.place = behind.place + (own.place - behind.place) * share;
    }
    return own;
}

// Value in the block at a position; `is_whole`: nothing if one of the eight voxels is missing.
fn find_in(number: u32, volume: vec3f, is_whole: bool) -> Found {
    if !has_voxels(number) {
        lack(number);
        return nothing();
    }
    mark(number, SEEN);
    let block = blocks[number];
    let local = local_of(block, volume);
    if fades(block, local) {
        return faded(block, local, volume);
    }
    if is_whole {
        return find_whole(block, local, picture.levels[block.level].scale);
    }
    return find(block, local, picture.levels[block.level].scale);
}

// Place one step before a sample: the interval from there leads into the volume, or out of a skipped region. Outside the
// volume its outermost voxels are repeated.
fn find_before(sample: f32) {
    let volume = clamp(volume_at(sample - 1.0), picture.box_low, picture.box_high);
    let region = region_from(0u, volume, FOR_MARCH);
    if is_stuck {
        return;
    }
    var found = nothing();
    if region.block != NONE {
        found = find_in(region.block, volume, false);
    }
    if !is_stuck {
        remember(found);
    }
}

// Counts the samples in a region, for the fidelity of the picture.
fn count(region: Region, samples: u32) {
    atomicAdd(&shown[select(region.level, MAX_LEVELS, region.block == NONE)], samples);
    if region.is_lacking {
        atomicAdd(&shown[MAX_LEVELS + 1u], samples);
    }
}
