// March along a ray through one block: samples, and the contributions of the intervals between them.

// Entry of a place, not rounded, as in `cpu/entry_scale.rs` of `render`.
fn scaled(place: f32) -> f32 {
    if picture.scale == LINEAR {
        return place;
    }
    if picture.scale == LOG {
        let entry = max(fma(picture.entry_map.y, log2(max(place, LEAST_PLACE)), picture.entry_map.x), 1.0);
        return select(0.0, entry, place > 0.0);
    }
    let size = abs(place);
    let octaves = select(log2(1.0 + size), size * (LOG2_E - size * (0.5 * LOG2_E)), size < 1e-3);
    return fma(picture.entry_map.y, select(-octaves, octaves, place >= 0.0), picture.entry_map.x);
}

// The smallest normal number, and log2(e).
const LEAST_PLACE = 1.1754944e-38;
const LOG2_E = 1.442695;

fn entry_at(place: f32) -> u32 {
    return u32(clamp(scaled(place), 0.0, f32(ENTRIES - 1u)) + 0.5);
}

// Entry of a table at a place: for parts of number `size`.
fn entry(first_word: u32, size: u32, place: f32) -> vec4f {
    let at = first_word + 2u * (size * ENTRIES + entry_at(place));
    let low = table[at];
    let high = table[at + 1u];
    let unit = bitcast<f32>(table[first_word + 7u * ENTRIES + size]);
    return vec4f(f32(low & 0xFFFFu), f32(low >> 16u), f32(high & 0xFFFFu), f32(high >> 16u)) * unit;
}

fn add(color: vec4f) {
    rgba = fma(color, vec4f(1.0 - rgba.a), rgba);
}

// Accumulated bend of opacity below an entry.
fn bend(first_word: u32, at: f32) -> f32 {
    return bitcast<f32>(table[first_word + 6u * ENTRIES + u32(clamp(at, 0.0, f32(ENTRIES - 1u)))]);
}

// Index in PARTS of the number of parts that the interval between two places requires.
fn parts_of(first_word: u32, start: f32, stop: f32) -> u32 {
    let ends = vec2f(scaled(start), scaled(stop));
    let low = min(ends.x, ends.y);
    let high = max(ends.x, ends.y);
    let error = (bend(first_word, high + 1.0) - bend(first_word, low)) * (high - low) * ERROR_PER_BEND;
    return select(0u, select(1u, 2u, error >= TOLERANCE * f32(FEW_PARTS * FEW_PARTS)), error >= TOLERANCE);
}

fn part_count(size: u32) -> u32 {
    return select(select(1u, FEW_PARTS, size == 1u), MANY_PARTS, size == 2u);
}

// Adds the interval from the previous sample to this one: its middle or, where opacity is nonlinear, as many parts as required.
fn add_leg(first_word: u32, found: Found, is_bent: bool, sample: f32, stride: f32) {
    let leg_start = select(found.place, before, knows_before);
    var size = 0u;
    if is_bent {
        size = parts_of(first_word, leg_start, found.place);
    }
    var light = vec2f(1.0, 0.0);
    if IS_LIT {
        light = light_of(soft_squared_cosine(found.slope + slope)) * dimmed(sample - MIDDLE, stride);
    }
    let parts = part_count(size);
    let apart = (found.place - leg_start) / f32(parts);
    for (var part = 0u; part < parts; part++) {
        var color = entry(first_word, size, fma(apart, f32(part) + 0.5, leg_start));
        if IS_LIT {
            color = lit(color, light);
        }
        add(color);
    }
}

fn remember(found: Found) {
    before = found.place;
    slope = found.slope;
    knows_before = found.is_there;
}

// Color among the words after the tables.
fn color_at(word: u32) -> vec4f {
    return bitcast<vec4f>(vec4u(table[word], table[word + 1u], table[word + 2u], table[word + 3u]));
}

// Color of a label, as in `scene/color_map.rs` of `render`.
fn label_color(label: u32) -> vec4f {
    if label < COLORS {
        return color_at(picture.labels_at + 4u * label);
    }
    var bits = label;
    bits = (bits ^ (bits >> 16u)) * 0x7FEB352Du;
    bits = (bits ^ (bits >> 15u)) * 0x846CA68Bu;
    bits = bits ^ (bits >> 16u);
    let value = 0.75 + f32(extractBits(bits, 16u, 8u)) * (0.25 / 255.0);
    let saturation = 0.4 + f32(extractBits(bits, 24u, 8u)) * (0.5 / 255.0);
    let hue = f32(bits & 0xFFFFu) * (6.0 / 65536.0);
    let k = (vec3f(5.0, 3.0, 1.0) + hue) % vec3f(6.0);
    return vec4f(value * (1.0 - saturation * clamp(min(k, 4.0 - k), vec3f(0.0), vec3f(1.0))), 1.0);
}

fn add_label(block: Block, first_word: u32, local: vec3f) {
    let raw = nearest(block, local);
    if (block.flags & HAS_MISSING) != 0u && !is_there(raw) {
        return;
    }
    let value = value_of(raw);
    var color = entry(first_word, 0u, place_in(block, value));
    if picture.labels_at != 0u {
        color = label_color(bitcast<u32>(i32(value))) * color.a;
    }
    add(color);
}

// Cell that contains a position.
fn cell_at(block: Block, local: vec3f) -> vec3u {
    return min(vec3u(max(local, vec3f(0.0)) / f32(CELL)), (block.shape - 1u) / CELL);
}

// Byte of a cell, in the list that begins at this word.
fn byte_at(block: Block, first_word: u32, cell: vec3u) -> u32 {
    let cells = (block.shape + CELL - 1u) / CELL;
    let number = (cell.z * cells.y + cell.y) * cells.x + cell.x;
    return extractBits(fields[first_word + number / 4u], 8u * (number & 3u), 8u);
}

// Number of samples that the ray has in the box of cells nearer than `reach` around its own. At least one.
fn samples_to_exit(block: Block, cell: vec3u, reach: f32, local: vec3f, per_voxel: vec3f) -> u32 {
    let cells = vec3f((block.shape + CELL - 1u) / CELL);
    let low = vec3f(cell) - (reach - 1.0);
    let high = vec3f(cell) + reach;
    var samples = 1e9;
    for (var axis = 0u; axis < 3u; axis++) {
        let forward = per_voxel[axis] >= 0.0;
        // Beyond the outermost cells only the end of the block limits the ray.
        if select(low[axis] <= 0.0, high[axis] >= cells[axis], forward) {
            continue;
        }
        let wall = f32(CELL) * select(low[axis], high[axis], forward);
        samples = min(samples, (wall - local[axis]) * per_voxel[axis]);
    }
    return u32(max(samples, 0.0)) + 1u;
}

// Result of a test for skipping at sample number `i` in a block.
struct Ahead {
    // Number of samples for which nothing is visible; 0 if something is.
    skipped: u32,
    is_bent: bool,
}

fn look(block: Block, local: vec3f, per_voxel: vec3f, left: u32) -> Ahead {
    if (block.flags & HIDDEN) != 0u {
        return Ahead(left, false);
    }
    if (block.flags & FULL) != 0u {
        return Ahead(0u, (block.flags & FULL_BENT) != 0u);
    }
    let cell = cell_at(block, local);
    let byte = byte_at(block, block.field, cell);
    let reach = byte & (BENT - 1u);
    if reach == 0u {
        return Ahead(0u, (byte & BENT) != 0u);
    }
    return Ahead(min(samples_to_exit(block, cell, f32(reach), local, per_voxel), left), false);
}

// Samples from `first` to before `behind`, each for 2^`stride_log2` steps and in their middle. Voxels are looked up at only one
// place of the code, because what is inlined twice is compiled twice.
fn march(block: Block, first: f32, behind: f32, stride_log2: u32) {
    let stride = f32(1u << stride_log2);
    let scale = picture.levels[block.level].scale;
    let start = local_of(block, volume_at(first + (stride - 1.0) / 2.0));
    let along = ray_step * scale * stride;
    let count = u32((behind - first) / stride);
    let first_word = stride_log2 * TABLE_WORDS;
    let per_voxel = select(1.0 / along, vec3f(FAR), abs(along) < vec3f(STILL));
    let fewest = min(abs(per_voxel.x), min(abs(per_voxel.y), abs(per_voxel.z))) * f32(CELL);
    let run = max(u32(min(fewest, f32(RUN))), 1u);
    var is_fresh = false;
    var is_bent = true;
    // Sample of the next test for skipping.
    var looks_at = 0u;
    var i = 0u;
    while i < count && rgba.a < picture.opaque {
        var at = f32(i);
        var skipped = 0u;
        if i == looks_at {
            let ahead = look(block, fma(along, vec3f(at), start), per_voxel, count - i);
            skipped = ahead.skipped;
            looks_at = i + select(skipped, run, skipped == 0u);
            // The interval to the first sample begins in another block, where opacity may be nonlinear.
            is_bent = i == 0u || ahead.is_bent;
        }
        if skipped > 0u && (IS_LABELS || !knows_before) {
            is_fresh = true;
            i += skipped;
            continue;
        }
        if IS_LABELS {
            add_label(block, first_word, fma(along, vec3f(at), start));
            i++;
            continue;
        }
        let looks_back = skipped == 0u && is_fresh && !knows_before;
        if looks_back {
            at -= 1.0;
        }
        is_fresh = false;
        let found = find(block, fma(along, vec3f(at), start), scale);
        if looks_back {
            remember(found);
            continue;
        }
        if found.is_there {
            // Values in the interval to the first hidden sample may be visible.
            add_leg(first_word, found, is_bent || skipped > 0u, first / stride + at, stride);
        }
        if skipped > 0u {
            forget();
            is_fresh = true;
            i += skipped;
        } else {
            remember(found);
            i++;
        }
    }
}
