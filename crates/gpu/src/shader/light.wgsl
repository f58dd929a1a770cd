// Lighting by a headlight at the eye, as in `scene/light.rs` of `render`.

// Squared cosine between a gradient in volume space and the ray; 1 without a gradient, or with an infinite one.
fn squared_cosine(gradient: vec3f) -> f32 {
    let along = dot(gradient, ray_step * (picture.direction / step_stretch));
    let mixed = vec3f(gradient.xx, gradient.y) * vec3f(gradient.y, gradient.zz);
    let square = dot(gradient * gradient, picture.squares) + dot(mixed, picture.mixed_squares);
    if square > 0.0 && square < NEVER {
        return min(along * along / square, 1.0);
    }
    return 1.0;
}

// Factor of the colors, and addition for each part of opacity.
fn light_of(squared: f32) -> vec2f {
    var mirrored = squared;
    for (var i = 0u; i < SQUARINGS; i++) {
        mirrored *= mirrored;
    }
    return vec2f(picture.light.x + picture.light.y * sqrt(squared), mirrored * picture.light.z);
}

// Premultiplied color under a light.
fn lit(color: vec4f, light: vec2f) -> vec4f {
    return vec4f(min(color.rgb * light.x + light.y * color.a, vec3f(color.a)), color.a);
}
