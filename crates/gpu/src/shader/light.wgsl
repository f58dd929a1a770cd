// Lighting by a headlight at the eye, as in `scene/light.rs` of `render`.

// Squared length of a gradient in volume space, and the square of its part along the ray.
fn squares_of(gradient: vec3f) -> vec2f {
    let along = dot(gradient, ray_step * (picture.direction / step_stretch));
    let mixed = vec3f(gradient.xx, gradient.y) * vec3f(gradient.y, gradient.zz);
    return vec2f(dot(gradient * gradient, picture.squares) + dot(mixed, picture.mixed_squares), along * along);
}

// Squared cosine between a gradient in volume space and the ray; 1 without a gradient, or with an infinite one.
fn squared_cosine(gradient: vec3f) -> f32 {
    let squares = squares_of(gradient);
    if squares.x > 0.0 && squares.x < NEVER {
        return min(squares.y / squares.x, 1.0);
    }
    return 1.0;
}

// The same for the gradient of a sample of the volume, softer where the gradient is weak.
fn soft_squared_cosine(gradient: vec3f) -> f32 {
    let squares = squares_of(gradient) + picture.soft;
    if squares.x < NEVER {
        return min(squares.y / squares.x, 1.0);
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
