//! The whole path in one process: data server, encrypted connection, viewing node, WebSocket, picture.

use export::film::draw;
use export::picture::PictureRequest;
use node::assemble::assemble;
use render::ImageSize;
use view::ViewRequest;

use crate::common::options;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_a_complete_picture_of_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[]);
    let demo = node::demo::start(&options).await.unwrap();
    let seen = demo.check().await.unwrap();
    assert_eq!(seen.frame.fidelity.level_shown, Some(seen.frame.fidelity.level_wanted));
    assert!(seen.frame.fidelity.blocks_total > 0);
    assert_eq!(seen.frame.fidelity.blocks_present, seen.frame.fidelity.blocks_total);
}

#[tokio::test(flavor = "multi_thread")]
async fn naming_the_default_color_map_does_not_change_the_picture() {
    let folder = tempfile::tempdir().unwrap();
    let sample = node::demo::sample(folder.path()).unwrap();
    let options = options(folder.path(), &[sample.to_str().unwrap()]);
    let stack = assemble(&options.locations[0], &options.context).await.unwrap();
    let png = async |map: Option<&str>| {
        let output = folder.path().join(format!("{}.png", map.unwrap_or("chosen")));
        let mut fields = ViewRequest::default();
        fields.set("transfer", &map.into()).unwrap();
        let request = PictureRequest { fields, ..PictureRequest::default() };
        let size = ImageSize { width: 64, height: 48 };
        draw(&stack.source, &request.into(), size, (64 << 20).into(), None, &output, |_, _| ())
            .await
            .unwrap();
        std::fs::read(output).unwrap()
    };
    let chosen = png(None).await;
    assert!(png(Some("viridis")).await == chosen, "viridis is the default");
    assert!(png(Some("gray")).await != chosen, "another color map changes the picture");
}
