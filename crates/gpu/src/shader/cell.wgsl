// Values along a ray within one cell of eight voxels: a cubic, and where it crosses values, as in `isosurface/cubic.rs` of `render`.
//
// Values are relative to that of the first corner, which preserves their differences in f32.

// c.x + c.y s + c.z s^2 + c.w s^3: the values at `start + s * along`, in fractions of the cell.
fn cubic_of(v: array<f32, 8>, start: vec3f, along: vec3f) -> vec4f {
    let rise = vec4f(v[1] - v[0], v[3] - v[2], v[5] - v[4], v[7] - v[6]);
    let edge = fma(rise, vec4f(start.x), vec4f(v[0], v[2], v[4], v[6]));
    let edge_along = rise * along.x;
    // Coefficients of the lower face and of the upper one.
    let side = edge.yw - edge.xz;
    let side_along = edge_along.yw - edge_along.xz;
    let face = fma(side, vec2f(start.y), edge.xz);
    let face_along = edge_along.xz + side_along * start.y + side * along.y;
    let face_bent = side_along * along.y;
    let depth = face.y - face.x;
    let depth_along = face_along.y - face_along.x;
    let depth_bent = face_bent.y - face_bent.x;
    return vec4f(
        fma(depth, start.z, face.x),
        face_along.x + depth_along * start.z + depth * along.z,
        face_bent.x + depth_bent * start.z + depth_along * along.z,
        depth_bent * along.z,
    );
}

fn cubic_at(c: vec4f, s: f32) -> f32 {
    return fma(fma(fma(c.w, s, c.z), s, c.y), s, c.x);
}

// 0, the extrema before `length`, and `length`: the cubic is monotone between two of them.
struct Pieces {
    ends: array<f32, 4>,
    count: u32,
}

fn pieces_of(c: vec4f, length: f32) -> Pieces {
    var pieces: Pieces;
    pieces.count = 1u;
    let square = c.z * c.z - 3.0 * c.y * c.w;
    if square >= 0.0 {
        // Both roots without cancellation; infinities are no extrema.
        let root = sqrt(square);
        let far = -(c.z + select(root, -root, c.z < 0.0));
        let one = far / (3.0 * c.w);
        let other = c.y / far;
        for (var i = 0u; i < 2u; i++) {
            let turn = select(max(one, other), min(one, other), i == 0u);
            if turn > pieces.ends[pieces.count - 1u] && turn < length {
                pieces.ends[pieces.count] = turn;
                pieces.count++;
            }
        }
    }
    pieces.ends[pieces.count] = length;
    pieces.count++;
    return pieces;
}

// Number of steps after which only bisection is used.
const MOST_STEPS = 24u;
// Distance to the next estimate that ends the search: steps of the ray.
const PRECISION = 1e-6;

// Position between `first` and `last`, whose values lie on different sides of `value`, at which it is crossed.
fn crossing(c: vec4f, value: f32, first: f32, last: f32) -> f32 {
    var low = first;
    var high = last;
    let side = cubic_at(c, low) >= value;
    var s = 0.5 * (low + high);
    for (var i = 0u; i < MOST_STEPS; i++) {
        let rest = cubic_at(c, s) - value;
        if (rest >= 0.0) == side {
            low = s;
        } else {
            high = s;
        }
        // Newton's step if it stays between both, else the middle.
        let newton = s - rest / fma(fma(3.0 * c.w, s, 2.0 * c.z), s, c.y);
        let guess = select(0.5 * (low + high), newton, newton > low && newton < high);
        if abs(guess - s) <= PRECISION {
            return guess;
        }
        s = guess;
    }
    return s;
}

// Gradient of the trilinear interpolant of the corners, at fractions of the cell; per voxel.
fn gradient_of(v: array<f32, 8>, share: vec3f) -> vec3f {
    let rise = vec4f(v[1] - v[0], v[3] - v[2], v[5] - v[4], v[7] - v[6]);
    let along = fma(rise, vec4f(share.x), vec4f(v[0], v[2], v[4], v[6]));
    let near = blend(along.x, along.y, share.y);
    let far = blend(along.z, along.w, share.y);
    let x = blend(blend(rise.x, rise.y, share.y), blend(rise.z, rise.w, share.y), share.z);
    let y = blend(along.y - along.x, along.w - along.z, share.z);
    return vec3f(x, y, far - near);
}
