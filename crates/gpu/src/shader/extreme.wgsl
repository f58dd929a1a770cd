// Largest or smallest value along a ray, as in `cpu/extreme` of `render`: only the best height so far is kept.

// Best height; NOTHING if no value was met.
var<private> best: f32;

fn may_rise(block: Block) -> bool {
    return best < block.highest - ALIKE;
}

// Samples of a block up to before `behind`; skips cells whose heights do not exceed the best one.
fn climb(block: Block, behind: f32) {
    let start = local_of(block, volume_at(next));
    let first = next;
    let along = ray_step * picture.levels[block.level].scale;
    let per_voxel = select(1.0 / along, vec3f(FAR), abs(along) < vec3f(STILL));
    let outside = first + outside_fade(block, start, along, behind - first);
    while next < behind && best < TOP - ALIKE {
        let local = fma(along, vec3f(next - first), start);
        let is_fading = next < outside.x || next >= outside.y;
        if !is_fading {
            if !may_rise(block) {
                next = outside.y;
                continue;
            }
            let cell = cell_at(block, local);
            let peak = byte_at(block, block.field, cell);
            if peak == 0u || f32(peak - 1u) * PEAK_STEP <= best + ALIKE {
                next = min(next + f32(samples_to_exit(block, cell, 1.0, local, per_voxel)), outside.y);
                continue;
            }
        }
        var found: Found;
        if is_fading {
            found = faded(block, local, volume_at(next));
            if is_stuck {
                return;
            }
        } else {
            found = find(block, local, picture.levels[block.level].scale);
        }
        if found.is_there {
            best = max(best, clamp(fma(scaled(found.place), picture.sense.x, picture.sense.y), 0.0, TOP));
        }
        next += 1.0;
    }
}

// Its color.
fn color_of_best() -> vec4f {
    return palette_color((best - picture.sense.y) * picture.sense.x);
}
