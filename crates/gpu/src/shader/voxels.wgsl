// Voxels: interpolation between them, and missing values.

// Result of a sample: its place in the table, and the slopes of places around it, in volume space.
struct Found {
    place: f32,
    slope: vec3f,
    is_there: bool,
}

fn nothing() -> Found {
    return Found(0.0, vec3f(0.0), false);
}

fn value_of(raw: u32) -> f32 {
    if FORMAT == FORMAT_I16 {
        return f32(extractBits(bitcast<i32>(raw), 0u, 16u));
    }
    if FORMAT == FORMAT_F32 || FORMAT == FORMAT_RELATIVE {
        return bitcast<f32>(raw);
    }
    return f32(raw);
}

fn is_there(raw: u32) -> bool {
    let value = value_of(raw);
    if FORMAT == FORMAT_RELATIVE {
        return value < 1.5;
    }
    // By its bits: comparisons with NaN may be optimized away.
    if FORMAT == FORMAT_F32 && (raw & 0x7F800000u) == 0x7F800000u {
        return false;
    }
    for (var i = 0u; i < picture.missing_count; i++) {
        if value == bitcast<f32>(table[picture.missing_at + i]) {
            return false;
        }
    }
    return value >= picture.valid.x && value <= picture.valid.y;
}

fn place_in(block: Block, value: f32) -> f32 {
    return clamp((value - block.origin) * block.gain, -FAR, FAR);
}

// The eight voxels between the lowest and the highest corner, numbered by bits: 1 x, 2 y, 4 z.
fn between(block: Block, low: vec3u, high: vec3u) -> array<u32, 8> {
    let a = low + block.texel;
    let b = high + block.texel;
    return array<u32, 8>(
        texel(block.atlas, a),
        texel(block.atlas, vec3u(b.x, a.yz)),
        texel(block.atlas, vec3u(a.x, b.y, a.z)),
        texel(block.atlas, vec3u(b.xy, a.z)),
        texel(block.atlas, vec3u(a.xy, b.z)),
        texel(block.atlas, vec3u(b.x, a.y, b.z)),
        texel(block.atlas, vec3u(a.x, b.yz)),
        texel(block.atlas, b),
    );
}

// Voxels around a cell. Before the first voxel and after the ghost voxels the outermost ones are repeated.
fn corners_of(block: Block, cell: vec3i) -> array<u32, 8> {
    let last = vec3i(block.last);
    return between(block, vec3u(clamp(cell, vec3i(0), last)), vec3u(clamp(cell + 1, vec3i(0), last)));
}

// The eight voxels around a position, and the weights of the upper ones.
struct Corners {
    raw: array<u32, 8>,
    share: vec3f,
}

fn around(block: Block, local: vec3f) -> Corners {
    let at = max(local, vec3f(0.0));
    let low = min(vec3u(at), block.shape - 1u);
    let high = min(low + 1u, block.last);
    return Corners(between(block, low, high), min(at - vec3f(low), vec3f(1.0)));
}

fn blend(a: f32, b: f32, share: f32) -> f32 {
    return fma(b - a, share, a);
}

// Trilinear among present voxels, `scale` voxels per voxel of level 0.
fn interpolated(block: Block, v: array<f32, 8>, share: vec3f, scale: vec3f) -> Found {
    let rise = vec4f(v[1] - v[0], v[3] - v[2], v[5] - v[4], v[7] - v[6]);
    let along = fma(rise, vec4f(share.x), vec4f(v[0], v[2], v[4], v[6]));
    let near = blend(along.x, along.y, share.y);
    let far = blend(along.z, along.w, share.y);
    var found = Found(place_in(block, blend(near, far, share.z)), vec3f(0.0), true);
    if IS_LIT {
        let x = blend(blend(rise.x, rise.y, share.y), blend(rise.z, rise.w, share.y), share.z);
        let y = blend(along.y - along.x, along.w - along.z, share.z);
        found.slope = vec3f(x, y, far - near) * (block.gain * scale);
    }
    return found;
}

// Interpolation among the present ones of the eight, their weights scaled up to one; nothing if less than half of the weight is present.
fn among_present(block: Block, around_it: Corners, scale: vec3f) -> Found {
    var corners = around_it;
    var values: array<f32, 8>;
    var sum = 0.0;
    var weights = 0.0;
    var low = NEVER;
    var high = -NEVER;
    for (var i = 0u; i < 8u; i++) {
        if is_there(corners.raw[i]) {
            let upper = vec3<bool>((i & 1u) != 0u, (i & 2u) != 0u, (i & 4u) != 0u);
            let weight = select(1.0 - corners.share, corners.share, upper);
            let product = weight.y * weight.z * weight.x;
            let value = value_of(corners.raw[i]);
            sum = fma(value, product, sum);
            low = min(low, value);
            high = max(high, value);
            weights += product;
        }
    }
    if weights < 0.5 {
        return nothing();
    }
    let middle = sum / weights;
    if !IS_LIT {
        return Found(place_in(block, middle), vec3f(0.0), true);
    }
    // Rounding must not produce a slope among equal values.
    let even = clamp(middle, low, high);
    for (var i = 0u; i < 8u; i++) {
        values[i] = select(even, value_of(corners.raw[i]), is_there(corners.raw[i]));
    }
    var found = interpolated(block, values, corners.share, scale);
    found.place = place_in(block, middle);
    return found;
}

// Value at a position in a block.
fn find(block: Block, local: vec3f, scale: vec3f) -> Found {
    var corners = around(block, local);
    if (block.flags & HAS_MISSING) != 0u {
        return among_present(block, corners, scale);
    }
    var values: array<f32, 8>;
    for (var i = 0u; i < 8u; i++) {
        values[i] = value_of(corners.raw[i]);
    }
    return interpolated(block, values, corners.share, scale);
}

// The value at a position, but nothing if one of the eight is missing.
fn find_whole(block: Block, local: vec3f, scale: vec3f) -> Found {
    var corners = around(block, local);
    var values: array<f32, 8>;
    for (var i = 0u; i < 8u; i++) {
        if (block.flags & HAS_MISSING) != 0u && !is_there(corners.raw[i]) {
            return nothing();
        }
        values[i] = value_of(corners.raw[i]);
    }
    return interpolated(block, values, corners.share, scale);
}

// The nearest voxel.
fn nearest(block: Block, local: vec3f) -> u32 {
    let cell = min(vec3u(max(local, vec3f(0.0)) + 0.5), min(block.shape, block.last));
    return texel(block.atlas, cell + block.texel);
}
