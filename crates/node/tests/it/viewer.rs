//! The whole path in one process: data server, encrypted connection, viewing node, WebSocket, picture.

use crate::common::options;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_a_complete_picture_of_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[]);
    let demo = node::demo::start(&options).await.unwrap();
    let seen = demo.check().await.unwrap();
    assert_eq!(seen.frame.truth.level_shown, seen.frame.truth.level_wanted);
    assert!(seen.frame.truth.blocks_total > 0);
    assert_eq!(seen.frame.truth.blocks_present, seen.frame.truth.blocks_total);
}
