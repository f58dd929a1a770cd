// Surfaces and slices in their order along the ray, blended with what the transfer function shows, as in `cpu/packet/solids.rs` of `render`.
//
// The ray marches to the sample before its next hit. The step that contains the hit is drawn in segments, before it
// and behind it, between the values at their ends; `before` is the place at the end of the last one.

// `hit` is the next hit of the ray: a surface, else the nearest slice.
var<private> has_hit: bool;
var<private> is_sheet: bool;
// True within a step that contains a surface: the one that ends at sample `next`, drawn up to `reached`.
var<private> is_in_step: bool;
var<private> reached: f32;
// Light of that step.
var<private> step_squared: f32;

// Finds the next hit; false if it is not known yet.
fn find_hit() -> bool {
    if has_hit {
        return true;
    }
    cut();
    if is_stuck {
        return false;
    }
    search_end = select(search_at, min(reach.y, sheet_at), picture.surface_count > 0u && ceil(reach.x) < ceil(reach.y));
    is_sheet = !search_surfaces();
    if is_sheet {
        if is_stuck || search_at < search_end {
            return false;
        }
        hit = Hit(sheet_at, sheet_place, select(sheet_squared, 1.0, IS_LABELS), sheet_color());
    }
    has_hit = true;
    return true;
}

// Draws the next hit and removes it.
fn take_hit() {
    add(hit.color);
    has_hit = false;
    if is_sheet {
        sheet_at = NEVER;
    } else {
        search_taken++;
    }
}

// Place in the table at a sample, in any block; nothing if some of it is missing.
fn place_at(sample: f32) -> Found {
    // Outside the volume its outermost voxels are repeated.
    let volume = clamp(volume_at(sample), picture.box_low, picture.box_high);
    let region = region_from(0u, volume, FOR_VOXELS);
    if is_stuck || region.block == NONE {
        return nothing();
    }
    return find_in(region.block, volume, true);
}

// Draws the segment up to the next hit or, if that lies behind the step, the rest of the step.
fn meet() {
    let is_last = is_in_step && hit.at >= next;
    let goes_on = !is_last || next < end;
    let first = max(floor(hit.at), next - 1.0);
    var found = nothing();
    if DRAWS_VOLUME && (is_last && goes_on || !is_in_step && !knows_before) {
        found = place_at(select(first, next, is_last));
        if is_stuck {
            return;
        }
    }
    if !is_in_step {
        if !knows_before {
            before = found.place;
            knows_before = found.is_there;
        }
        is_in_step = true;
        reached = first;
        next = first + 1.0;
    }
    let stop = select(hit.at, next, is_last);
    let place = select(hit.place, found.place, is_last);
    if !is_last {
        step_squared = hit.squared;
    }
    if DRAWS_VOLUME && goes_on && (!is_last || found.is_there) {
        var color = stretch(select(place, before, knows_before), place, stop - reached);
        if IS_LIT {
            color = lit(color, light_of(step_squared) * dimmed((reached + stop) / 2.0, 1.0));
        }
        add(color);
    }
    slope = vec3f(0.0);
    before = place;
    if !is_last {
        take_hit();
        reached = max(reached, stop);
        knows_before = true;
        return;
    }
    is_in_step = false;
    knows_before = DRAWS_VOLUME && goes_on && found.is_there;
    next = select(next, next + 1.0, DRAWS_VOLUME && goes_on);
}

// Premultiplied color of an interval in which the place in the table is linear, `length` steps long.
fn stretch(start: f32, stop: f32, length: f32) -> vec4f {
    var color = vec4f(0.0);
    if length <= 0.0 {
        return color;
    }
    let size = parts_of(0u, start, stop);
    let parts = f32(part_count(size));
    for (var part = 0.5; part < parts; part += 1.0) {
        let own = entry(0u, 0u, fma(stop - start, part / parts, start));
        if own.a > 0.0 {
            let opacity = 1.0 - pow(1.0 - own.a, length / parts);
            color = fma(own * (opacity / own.a), vec4f(1.0 - color.a), color);
        }
    }
    return color;
}
