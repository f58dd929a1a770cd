//! A finished picture by several ranks in one process is that of one, from data to pixels, whatever memory each has.

#![expect(clippy::cast_possible_truncation, reason = "helpers of tests")]

use std::sync::Arc;

use array::Source;
use array::conformance::{MemorySource, one_array};
use corridor_stream::compose::Method;
use corridor_stream::{MIN_MEMORY_BYTES, StillRequest, render_by_threads, render_still};
use render::ImageSize;
use session::View;

const SHAPE: [u64; 3] = [40, 48, 56];

/// Waves in all directions.
fn source() -> Arc<dyn Source> {
    let [nz, ny, nx] = SHAPE;
    let value = |i: u64| {
        let [x, y, z] = [i % nx, i / nx % ny, i / (nx * ny)].map(|n| n as f64);
        let wave = 120.0 + 60.0 * (0.3 * x).sin() * (0.2 * y).cos() + 50.0 * (0.25 * z).sin();
        wave as u8
    };
    let bytes: Vec<u8> = (0..nx * ny * nz).map(value).collect();
    let dataset = one_array("|u1".parse().expect("a type"), &SHAPE, &[16; 3]);
    Arc::new(MemorySource::new(dataset, vec![vec![bytes.into()]]).expect("as described"))
}

fn request(memory_bytes: u64) -> StillRequest {
    let size = ImageSize { width: 80, height: 60 };
    StillRequest { view: None, colour_map: None, size, means: memory_bytes.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_of_one_process_give_the_picture_of_one() {
    let memory_bytes = 8 * MIN_MEMORY_BYTES;
    let one = render_still(source(), request(memory_bytes), |_, _| ()).await.unwrap();
    let expected = one.image.to_rgb8(one.view.background.map(|c| f32::from(c) / 255.0));
    assert!(expected.iter().any(|&byte| byte > 60), "something must be seen");
    for (count, method) in [(1, Method::Auto), (3, Method::Auto), (8, Method::BinarySwap)] {
        let mut progress = (0, 0);
        let heard = |done, total| progress = (done, total);
        let many = render_by_threads(source(), request(memory_bytes), count, method, heard).await.unwrap();
        let off = expected.iter().zip(&many.rgb).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(off <= Some(1) && many.rgb.len() == expected.len(), "{count} ranks are off by {off:?}");
        assert_eq!(many.truth, one.truth, "what it shows is the same too");
        assert!(progress.0 == progress.1 && progress.1 > 0, "rank 0 tells of its blocks: {progress:?}");
    }
}

/// What is wrong with a view is said once, by whichever rank notices first; no other is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_drawn_is_an_error_of_all() {
    let memory_bytes = 4 * MIN_MEMORY_BYTES;
    let mut wrong = request(memory_bytes);
    let dataset = source().describe().await.unwrap();
    wrong.view = Some(View { level: Some(7), ..View::first_of(&dataset).unwrap() });
    let error = render_by_threads(source(), wrong, 4, Method::Auto, |_, _| ()).await.unwrap_err();
    assert!(error.to_string().contains("level"), "{error}");
    let swap = render_by_threads(source(), request(memory_bytes), 3, Method::BinarySwap, |_, _| ()).await;
    assert!(swap.unwrap_err().to_string().contains("power of two"));
    let many = render_by_threads(source(), request(memory_bytes), 5, Method::Auto, |_, _| ()).await;
    assert!(many.unwrap_err().to_string().contains("1 to 4 ranks"));
}
