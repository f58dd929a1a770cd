// Steps through cubes of one size along a ray, as in `isosurface/hits/traversal.rs` of `render`.

// A ray in a block's voxels.
struct Local {
    origin: vec3f,
    step: vec3f,
}

struct Walk {
    // Cube that contains it.
    at: vec3i,
    side: f32,
    // Lowest and highest cube; these are unbounded outward.
    low: vec3i,
    high: vec3i,
}

fn walk_from(local: Local, at: f32, side: f32, low: vec3i, high: vec3i) -> Walk {
    let cube = floor(fma(local.step, vec3f(at), local.origin) / side);
    return Walk(vec3i(clamp(cube, vec3f(low), vec3f(high))), side, low, high);
}

// Positions where the ray leaves the cube through the walls of each axis, in steps.
fn exits(local: Local, walk: Walk) -> vec3f {
    let forward = local.step > vec3f(0.0);
    let stands = abs(local.step) < vec3f(STILL);
    let outermost = walk.at == select(walk.low, walk.high, forward);
    let wall = vec3f(walk.at + select(vec3i(0), vec3i(1), forward)) * walk.side;
    let steps = (wall - local.origin) / select(local.step, vec3f(1.0), stands);
    return select(steps, vec3f(NEVER), outermost | stands);
}

fn least(v: vec3f) -> f32 {
    return min(v.x, min(v.y, v.z));
}

// Next cube; the same one if there is none.
fn stepped(local: Local, walk: Walk, exits: vec3f) -> Walk {
    var next = walk;
    var axis = select(0u, 1u, exits.y < exits.x);
    axis = select(axis, 2u, exits.z < exits[axis]);
    if exits[axis] < NEVER {
        next.at[axis] += select(-1, 1, local.step[axis] > 0.0);
    }
    return next;
}
