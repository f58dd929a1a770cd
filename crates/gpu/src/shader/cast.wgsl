// One ray for each pixel, front to back from region to region, until it is opaque, at its end, or waits for voxels.

var<workgroup> shown: array<atomic<u32>, SHOWN>;

// Range of a line inside a box, in steps; empty if the first is not below the second.
fn slab(start: vec3f, along: vec3f, low: vec3f, high: vec3f) -> vec2f {
    var span = vec2f(-NEVER, NEVER);
    for (var axis = 0u; axis < 3u; axis++) {
        if along[axis] == 0.0 {
            if start[axis] < low[axis] || start[axis] >= high[axis] {
                return vec2f(NEVER, -NEVER);
            }
            continue;
        }
        let a = (low[axis] - start[axis]) / along[axis];
        let b = (high[axis] - start[axis]) / along[axis];
        span = vec2f(max(span.x, min(a, b)), min(span.y, max(a, b)));
    }
    return span;
}

// Sets up the ray of a pixel, and the range of its samples.
fn aim(pixel: vec2u) {
    let size = vec2f(picture.size);
    let at = (2.0 * (vec2f(pixel) + 0.5) / size - 1.0) * vec2f(1.0, -1.0);
    let across = at * picture.half + vec2f(picture.middle, 0.0);
    let shorter = inverseSqrt(1.0 + dot(across, across));
    ray_origin = picture.volume.origin + picture.volume.origin_across * at.x + picture.volume.origin_upward * at.y;
    ray_step = (picture.volume.step + picture.volume.step_across * at.x + picture.volume.step_upward * at.y) * shorter;
    var span = slab(ray_origin, ray_step, picture.box_low, picture.box_high);
    if picture.has_clip != 0u {
        let rays = picture.world;
        let start = rays.origin + rays.origin_across * at.x + rays.origin_upward * at.y;
        let along = (rays.step + rays.step_across * at.x + rays.step_upward * at.y) * shorter;
        let clip = slab(start, along, picture.clip_low, picture.clip_high);
        span = vec2f(max(span.x, clip.x), min(span.y, clip.y));
    }
    if picture.is_perspective != 0u {
        span.x = max(span.x, 0.0);
    }
    next = 0.0;
    end = 0.0;
    reach = vec2f(0.0);
    step_stretch = 1.0;
    if span.x < span.y && picture.is_thin != 0u {
        let count = max(round(span.y - span.x), 1.0);
        step_stretch = (span.y - span.x) / count;
        ray_origin += ray_step * (span.x - MIDDLE * step_stretch);
        ray_step *= step_stretch;
        reach = vec2f(MIDDLE, count + MIDDLE);
        next = 1.0;
        end = count + 1.0;
    } else if span.x < span.y {
        reach = span;
        next = ceil(span.x);
        end = max(ceil(span.y), next);
    }
}

// Color of a ray whose path is `times` as long as the one it was accumulated along, as in `cpu/packet/spacing.rs` of `render`.
fn lengthened(color: vec4f, times: f32) -> vec4f {
    if color.a <= 0.0 || color.a >= 1.0 {
        return color;
    }
    return color * ((1.0 - pow(1.0 - color.a, times)) / color.a);
}

// Draws samples up to before `behind` in a block, one by one, blended between its value and that of a coarser block.
fn draw_faded(block: Block, behind: f32) {
    while next < behind && rgba.a < picture.opaque {
        let volume = volume_at(next);
        let found = faded(block, local_of(block, volume), volume);
        if is_stuck {
            return;
        }
        if found.is_there {
            var own = found;
            let middle = select(found.place, (before + found.place) * 0.5, knows_before);
            own.place = middle;
            // The middle alone: the interval is not cut into parts.
            var color = entry(0u, 0u, middle);
            if IS_LIT {
                color = lit(color, light_of(soft_squared_cosine(found.slope + slope)) * dimmed(next - MIDDLE, 1.0));
            }
            add(color);
        }
        remember(found);
        next += 1.0;
    }
    next = select(next, behind, rgba.a >= picture.opaque);
}

// Draws samples of a segment in a block; moves `next` behind them.
fn draw_piece(block: Block, behind: f32, stride_log2: u32, is_fading: bool) {
    if is_stuck || next >= behind {
        return;
    }
    if !knows_before && !IS_LABELS {
        find_before(next);
        if is_stuck {
            return;
        }
    }
    if is_fading {
        draw_faded(block, behind);
        return;
    }
    march(block, next, behind, stride_log2);
    if stride_log2 > 0u {
        // The previous sample is one step away, not half a stride.
        forget();
    }
    next = behind;
}

// Returns the samples of `0..count` from `local` on that lie outside the transition: those before begin in it, those behind end
// in it.
fn outside_fade(block: Block, local: vec3f, along: vec3f, count: f32) -> vec2f {
    var first = 0.0;
    var behind = count;
    for (var axis = 0u; axis < 3u; axis++) {
        if (block.flags & (FADE_X << axis)) == 0u {
            continue;
        }
        let at = (FADE_REACH - local[axis]) / along[axis];
        if along[axis] > 0.0 {
            first = max(first, ceil(at));
        } else if along[axis] < 0.0 {
            behind = min(behind, floor(at) + 1.0);
        } else if local[axis] < FADE_REACH {
            first = count;
        }
    }
    first = clamp(first, 0.0, count);
    return vec2f(first, clamp(behind, first, count));
}

// Draws a block up to before `behind`: samples in the transition to coarser blocks one by one, the rest in strides, with single steps
// up to whole multiples of the stride.
fn draw_block(block: Block, behind: f32) {
    let start = next;
    let along = ray_step * picture.levels[block.level].scale;
    let outside = start + outside_fade(block, local_of(block, volume_at(start)), along, behind - start);
    let log2 = picture.levels[block.level].stride_log2;
    let stride = f32(1u << log2);
    var body = vec2f(ceil(outside.x / stride), floor(outside.y / stride)) * stride;
    if log2 == 0u || body.x >= body.y {
        body = outside.xx;
    }
    // One call, because what is inlined five times is compiled five times.
    for (var piece = 0u; piece < 5u; piece++) {
        var stop = behind;
        switch piece {
            case 0u: { stop = outside.x; }
            case 1u: { stop = body.x; }
            case 2u: { stop = body.y; }
            case 3u: { stop = outside.y; }
            default: {}
        }
        draw_piece(block, stop, select(0u, log2, piece == 2u), piece == 0u || piece == 4u);
    }
}

// True if nothing of a block is visible, nor in the intervals that lead to it from skipped regions.
fn is_unseen(block: Block) -> bool {
    let fades_somewhere = (block.flags & (FADE_X | FADE_Y | FADE_Z)) != 0u;
    if (block.flags & HIDDEN) == 0u || fades_somewhere || knows_before {
        return false;
    }
    return block.gap == NO_GAP || block.gap == gap;
}

// Draws one region, up to before `stop`.
fn pass_region(stop: f32) {
    let region = region_from(0u, volume_at(next), for_pass());
    if is_stuck {
        return;
    }
    let start = next;
    let behind = min(max(ceil(region.exit), next + 1.0), stop);
    if IS_EXTREME {
        climb_region(region, behind);
    } else if !DRAWS_VOLUME || region.block == NONE {
        forget();
        gap = NO_GAP;
        next = behind;
    } else {
        draw_region(region, behind);
    }
    count(region, u32(next - start));
}

fn climb_region(region: Region, behind: f32) {
    if region.block == NONE || is_of_no_use(region.block, FOR_CLIMB) {
        next = behind;
        return;
    }
    mark(region.block, SEEN);
    climb(blocks[region.block], behind);
    if best >= TOP - ALIKE {
        end = next;
    }
}

fn draw_region(region: Region, behind: f32) {
    let block = blocks[region.block];
    if is_unseen(block) {
        next = behind;
    } else if block.atlas == NO_ATLAS {
        lack(region.block);
        if is_stuck {
            return;
        }
        forget();
        next = behind;
    } else {
        mark(region.block, SEEN);
        draw_block(block, behind);
    }
    gap = select(block.gap, gap, is_stuck);
}

// Requests the blocks that a waiting ray will need next, if they are of use.
fn look_ahead() {
    let searches = HAS_SOLIDS && !has_hit;
    let purpose = select(for_pass(), FOR_SEARCH, searches);
    var sample = select(next, search_at, searches);
    for (var i = 0u; i < REGIONS_AHEAD && sample < end; i++) {
        let volume = volume_at(sample);
        var exit = NEVER;
        for (var level = 0u; level < picture.level_count; level++) {
            let at = place_of(level, volume);
            exit = min(exit, exit_of(level, at));
            let block = block_at(level, at);
            if block == NONE || block == NOT_COVERED {
                continue;
            }
            if !has_voxels(block) && !is_of_no_use(block, purpose) {
                mark(block, SOON);
            }
            break;
        }
        sample = max(ceil(exit), sample + 1.0);
    }
}

// Continues a ray; false if it has not ended yet.
fn go_on() -> bool {
    while rgba.a < picture.opaque {
        if HAS_SOLIDS {
            if !find_hit() {
                return false;
            }
            if picture.slices_are_alone != 0u {
                rgba = select(rgba, hit.color, hit.at < NEVER);
                return true;
            }
            // Extreme values have no depth: everything else is in front of them.
            if IS_EXTREME && hit.at < NEVER {
                take_hit();
                continue;
            }
        }
        if !is_in_step {
            let stop = min(floor(hit.at) + 1.0, end);
            while next < min(stop, end) && rgba.a < picture.opaque {
                if work_left == 0u {
                    return false;
                }
                work_left--;
                pass_region(stop);
                if is_stuck {
                    return false;
                }
            }
            if hit.at >= NEVER || rgba.a >= picture.opaque {
                return true;
            }
        }
        meet();
        if is_stuck {
            return false;
        }
    }
    return true;
}

fn begin(number: u32) -> Ray {
    if picture.is_first_pass == 0u {
        return rays[number];
    }
    return Ray(
        vec3f(0.0), 0.0, next, NO_GAP, 0u, 0.0, reach.x, reach.x, NO_SIDE, 1.0, NEVER, 0.0, 1.0, NOTHING,
        vec3i(0), NONE,
    );
}

fn trace(pixel: vec2u) {
    let number = (pixel.y - picture.first_row) * picture.size.x + pixel.x;
    aim(pixel);
    let ray = begin(number);
    if (ray.flags & HAS_ENDED) != 0u {
        return;
    }
    rgba = select(colors[number], vec4f(0.0), picture.is_first_pass != 0u);
    slope = ray.slope;
    before = ray.before;
    knows_before = (ray.flags & KNOWS_BEFORE) != 0u;
    gap = ray.gap;
    next = ray.next;
    hit = Hit(NEVER, 0.0, 1.0, vec4f(0.0));
    has_hit = false;
    is_in_step = (ray.flags & IS_IN_STEP) != 0u;
    reached = ray.reached;
    step_squared = ray.step_squared;
    search_at = ray.search_at;
    search_exit = ray.search_exit;
    search_side = ray.search_side;
    search_cell = ray.search_cell;
    search_block = ray.search_block;
    search_taken = extractBits(ray.flags, SEARCH_TAKEN, 8u);
    sheet_at = ray.sheet_at;
    sheet_place = ray.sheet_place;
    sheet_squared = ray.sheet_squared;
    slices_seen = extractBits(ray.flags, SLICES_SEEN, 8u);
    best = ray.best;
    is_stuck = false;
    work_left = REGIONS_PER_PASS;
    let has_ended = go_on();
    if is_stuck {
        look_ahead();
    }
    if IS_EXTREME && has_ended && best >= 0.0 {
        add(color_of_best());
    }
    var flags = select(0u, KNOWS_BEFORE, knows_before) | select(0u, HAS_ENDED, has_ended) | select(0u, IS_IN_STEP, is_in_step);
    flags |= (slices_seen << SLICES_SEEN) | (search_taken << SEARCH_TAKEN);
    if !has_ended {
        atomicAdd(&counts[0], 1u);
    }
    if has_ended || flags != ray.flags || next > ray.next || search_at > ray.search_at || reached != ray.reached {
        atomicAdd(&counts[1], 1u);
    }
    if has_ended && picture.is_thin != 0u && !HAS_SOLIDS && !IS_EXTREME {
        rgba = lengthened(rgba, step_stretch);
    }
    colors[number] = rgba;
    rays[number] = Ray(
        slope, before, next, gap, flags, reached, search_at, search_exit, search_side, step_squared, sheet_at, sheet_place,
        sheet_squared, best, search_cell, search_block,
    );
}

@compute @workgroup_size(8, 8)
fn cast_rays(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < SHOWN; i += 64u) {
        atomicStore(&shown[i], 0u);
    }
    workgroupBarrier();
    if id.x < picture.size.x && id.y < picture.row_count {
        trace(id.xy + vec2u(0u, picture.first_row));
    }
    workgroupBarrier();
    for (var i = lane; i < SHOWN; i += 64u) {
        // 64 bits, the lower half first.
        let samples = atomicLoad(&shown[i]);
        let lower = atomicAdd(&counts[2u + 2u * i], samples);
        if lower > 0xFFFFFFFFu - samples {
            atomicAdd(&counts[3u + 2u * i], 1u);
        }
    }
}
