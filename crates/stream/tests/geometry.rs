//! Geometry in pictures that are drawn in rows, and slices that are picked.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod support;

use std::sync::Arc;

use array::Error;
use render::ImageSize;
use serde_json::json;
use stream::{DrawResources, Film, FilmRequest, PixelPrecision, Session};
use support::Pyramid;

use corridor_stream as stream;

const MEMORY: u64 = 64 << 20;

#[tokio::test]
async fn pictures_in_rows_have_the_geometry_of_whole_ones() {
    let data = Pyramid::new(32, 16, 1);
    let film = async |layers: serde_json::Value| {
        let fetch: stream::GeometryFetch = Arc::new(|name| {
            Box::pin(async move {
                if name == "gone.csv" { Err(Error::not_found("no such file")) } else { Ok(CORNERS.into()) }
            })
        });
        let view = json!({"array": data.dataset().arrays[0].name, "layers": layers});
        let request = FilmRequest {
            views: vec![view::View::parse(&view.to_string()).unwrap()],
            choice: None,
            range: Default::default(),
            size: ImageSize { width: 96, height: 96 },
            resources: DrawResources::from(MEMORY).with_geometry(fetch),
            slabs: None,
            rank_group: None,
            pixels: PixelPrecision::Full,
        };
        Film::open(data.source(), request).await.unwrap()
    };
    const CORNERS: &[u8] = b"x,y,z\n0,0,0\n31,31,31\n0,31,0\n31,0,31\n";
    let with_points = json!([{"geometry": "corners.csv", "color": [255, 0, 0], "size": 9}]);
    let in_rows = async |layers| {
        let mut film = film(layers).await;
        let mut picture = film.next_in_rows(|_, _| {}).await?.unwrap();
        let bands: Vec<_> = picture.bands().collect();
        let rows = bands.into_iter().map(|rows| picture.draw(rows, &render::Cancel::default()).unwrap().rgba);
        Ok::<_, Error>(rows.flatten().collect::<Vec<_>>())
    };
    let whole = film(with_points.clone()).await.next(|_, _| {}).await.unwrap().unwrap();
    let rows = in_rows(with_points).await.unwrap();
    assert_eq!(rows, whole.image.rgba);
    assert_ne!(rows, in_rows(json!([])).await.unwrap(), "the points are seen");
    let error = in_rows(json!([{"geometry": "gone.csv"}])).await.unwrap_err().to_string();
    assert!(error.contains("gone.csv"), "{error}");
}

#[tokio::test]
async fn a_picked_slice_has_its_number_in_the_view() {
    let data = Pyramid::new(32, 16, 1);
    let session = Session::begin(data.dataset(), data.source(), MEMORY, None, Arc::new(|_| None)).unwrap();
    let slices = json!([
        {"axis": "z", "at": 30, "hidden": true},
        {"axis": "x", "at": 2},
        {"axis": "z", "at": 20},
    ]);
    let camera = json!({"eye": [15.5, 15.5, 100.0], "target": [15.5, 15.5, 15.5], "up": [0.0, 1.0, 0.0],
        "projection": {"orthographic": {"height_world": 32.0}}});
    let transfer = json!({"range": [0.0, 255.0], "map": "gray", "opacity": [[0.0, 1.0], [255.0, 1.0]]});
    let request = json!({
        "view": {"mode": "surfaces", "slices": slices, "camera": camera, "transfer": transfer},
        "width": 64, "height": 64, "at": [[32.5, 32.5]],
    });
    let request: stream::PickRequest = serde_json::from_value(request).unwrap();
    let answer = session.pick(&request, usize::try_from(MEMORY).unwrap()).await.unwrap();
    let pick = &answer.picks[0];
    assert_eq!((pick.hit, pick.number), (stream::PickedThing::Slice, Some(2)), "{pick:?}");
}
