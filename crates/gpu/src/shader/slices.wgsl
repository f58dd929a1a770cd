// Intersections of the ray with slices: only the nearest that has a value there matters, because it is opaque. As in `cpu/slices.rs` of `render`.

// Nearest of the tested slices, in steps; NEVER if there is none. Its place in the table, and the squared cosine there
// or, of labels, the label.
var<private> sheet_at: f32;
var<private> sheet_place: f32;
var<private> sheet_squared: f32;
// Number of slices tested.
var<private> slices_seen: u32;

// Tests the remaining slices; may have to wait.
fn cut() {
    while slices_seen < picture.slice_count {
        let axis = picture.slices[slices_seen].axis;
        let plane = picture.slices[slices_seen].at;
        let at = (plane - ray_origin[axis]) / select(ray_step[axis], 1.0, ray_step[axis] == 0.0);
        let is_met = ray_step[axis] != 0.0 && reach.x < reach.y && reach.x <= at && at <= reach.y;
        if is_met && at < sheet_at {
            var volume = volume_at(at);
            volume[axis] = plane;
            look_at_slice(at, volume);
            if is_stuck {
                return;
            }
        }
        slices_seen++;
    }
}

fn look_at_slice(at: f32, volume: vec3f) {
    let region = region_from(0u, volume, FOR_VOXELS);
    if is_stuck {
        return;
    }
    var found = nothing();
    var label = 0u;
    if region.block != NONE {
        let block = blocks[region.block];
        if IS_LABELS {
            let raw = nearest(block, local_of(block, volume));
            let is_missing = (block.flags & HAS_MISSING) != 0u && !is_there(raw);
            mark(region.block, SEEN);
            label = bitcast<u32>(i32(value_of(raw)));
            found = Found(place_in(block, value_of(raw)), vec3f(0.0), !is_missing);
        } else {
            found = find_in(region.block, volume, false);
            if is_stuck {
                return;
            }
        }
    }
    if picture.slices_are_alone != 0u {
        count(region, 1u);
    }
    if found.is_there {
        sheet_at = at;
        sheet_place = found.place;
        // Labels have no slope: their number is stored instead.
        sheet_squared = select(squared_cosine(found.slope), f32(bitcast<i32>(label)), IS_LABELS);
    }
}

// Color of an entry of the table, without opacity.
fn palette_color(entry: f32) -> vec4f {
    let at = clamp(fma(entry, picture.palette.y, picture.palette.x), 0.0, f32(COLORS - 1u));
    let low = min(u32(at), COLORS - 2u);
    return mix(color_at(picture.palette_at + 4u * low), color_at(picture.palette_at + 4u * low + 4u), at - f32(low));
}

fn sheet_color() -> vec4f {
    if IS_LABELS && picture.labels_at != 0u {
        return label_color(bitcast<u32>(i32(sheet_squared)));
    }
    return palette_color(scaled(sheet_place));
}
