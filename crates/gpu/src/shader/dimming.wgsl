// Dimming of lit samples by their place, as in `cpu/samples/dimming` of `render`: ambient occlusion, and the depth cue.

// The last two lookups of the occlusion: number of the first one, samples per step, occlusion there, and its rise to the second.
var<private> lookups: vec4f = vec4f(NEVER, 0.0, 0.0, 0.0);

fn occlusion_of_cell(cell: vec3u) -> f32 {
    let cells = picture.occlusion_cells;
    return bitcast<f32>(table[picture.occlusion_at + (cell.z * cells.y + cell.y) * cells.x + cell.x]);
}

fn occlusion(volume: vec3f) -> f32 {
    let last = picture.occlusion_cells - 1u;
    let place = clamp(fma(volume, picture.occlusion_scale, picture.occlusion_shift), vec3f(0.0), vec3f(last));
    let low = min(vec3u(place), max(last, vec3u(1u)) - 1u);
    let high = min(low + 1u, last);
    let share = place - vec3f(low);
    let near = vec4f(
        occlusion_of_cell(low),
        occlusion_of_cell(vec3u(low.x, high.y, low.z)),
        occlusion_of_cell(vec3u(low.x, low.y, high.z)),
        occlusion_of_cell(vec3u(low.x, high.y, high.z)),
    );
    let far = vec4f(
        occlusion_of_cell(vec3u(high.x, low.y, low.z)),
        occlusion_of_cell(vec3u(high.x, high.y, low.z)),
        occlusion_of_cell(vec3u(high.x, low.y, high.z)),
        occlusion_of_cell(high),
    );
    let rows = mix(near, far, share.x);
    let planes = mix(rows.xz, rows.yw, share.y);
    return mix(planes.x, planes.y, share.z);
}

// Factor of the depth cue at a position along the ray, in steps.
fn cue_at(steps: f32) -> f32 {
    return 1.0 - picture.cue_strength * clamp(fma(steps, picture.cue.y, picture.cue.x), 0.0, 1.0);
}

// Factor of the light at a sample; each sample is for `stride` steps, and in their middle.
fn dimmed(sample: f32, stride: f32) -> f32 {
    let cue = cue_at(fma(sample, stride, (stride - 1.0) / 2.0));
    if picture.occlusion_strength == 0.0 {
        return cue;
    }
    let every = max(picture.lookup_steps / stride, 1.0);
    let first = floor(sample / every) * every;
    if lookups.x != first || lookups.y != stride {
        let at = fma(first, stride, (stride - 1.0) / 2.0);
        let here = occlusion(volume_at(at));
        lookups = vec4f(first, stride, here, occlusion(volume_at(at + every * stride)) - here);
    }
    let occluded = fma(lookups.w, (sample - first) / every, lookups.z);
    return fma(-picture.occlusion_strength, occluded, 1.0) * cue;
}
