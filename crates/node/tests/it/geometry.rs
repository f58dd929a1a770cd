//! Geometry beside the data of a served folder, over a connection.

use array::{ErrorKind, Result};
use bytes::Bytes;
use node::geometry::for_user;

use crate::common::Served;

/// A folder with an array, a surface of several pieces, and a file outside that a link in it leads to.
fn folder() -> (tempfile::TempDir, String, Vec<u8>) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.bin"), [0u8; 64]).unwrap();
    std::fs::write(folder.join("a.toml"), "shape = [4, 4, 4]\ndtype = \"uint8\"\nfile = \"a.bin\"\n")
        .unwrap();
    let mut table = b"x,y,z\n".to_vec();
    table.extend(b"1.5,2.5,3.5\n".repeat(800_000));
    std::fs::write(folder.join("points.csv"), &table).unwrap();
    std::fs::write(parent.path().join("outside.csv"), "x,y\n1,2\n").unwrap();
    std::os::unix::fs::symlink(parent.path().join("outside.csv"), folder.join("link.csv")).unwrap();
    let path = folder.display().to_string();
    (parent, path, table)
}

async fn fetched(server: &Served, name: &str) -> Result<Bytes> {
    for_user(&server.stack().await)(name.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_served_folder_gives_its_geometry_in_pieces_and_nothing_outside_of_it() {
    let (_parent, path, table) = folder();
    let server = Served::with_options(&[&path], |options| options.explores_folders = true).await.unwrap();
    assert_eq!(fetched(&server, "points.csv").await.unwrap(), table);
    for (name, kind) in [
        ("link.csv", ErrorKind::Denied),
        ("../outside.csv", ErrorKind::Denied),
        ("a.bin", ErrorKind::Denied),
        ("none.csv", ErrorKind::NotFound),
    ] {
        assert_eq!(fetched(&server, name).await.unwrap_err().kind(), kind, "{name}");
    }
    assert!(fetched(&server, "coasts.geojson").await.unwrap().len() > 50_000, "bundled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_served_by_itself_gives_no_other_file() {
    let (_parent, path, _) = folder();
    let server = Served::start(&[&format!("{path}/a.toml")]).await;
    let error = fetched(&server, "points.csv").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("corridor serve FOLDER"), "{error}");
}
