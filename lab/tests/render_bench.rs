//! `corridor bench render` without peers: each frame is close to the reference, and missing peers are named with the reason.

use std::path::Path;

use corridor_lab::bench::options::Options;
use corridor_lab::bench::run;

#[tokio::test]
async fn every_frame_is_close_to_the_reference_and_missing_peers_are_explained() {
    let options = Options {
        is_quick: true,
        runs: Some(1),
        only: vec!["frames".into()],
        peers: Some(Vec::new()),
        ..Options::default()
    };
    let report = run("render", Path::new("corridor"), &options).await.unwrap();
    assert_eq!(report.error, None);
    let frames: Vec<_> = report.cases.iter().filter(|case| case.unit == "CPU-ms").collect();
    assert_eq!(frames.len(), 2 * 5, "two types, five transfer functions");
    for case in frames {
        let number = |name: &str| case.parameters.get(name).and_then(serde_json::Value::as_f64);
        assert!(case.ours.is_some_and(|ms| ms > 0.0), "{}", case.name);
        assert!(number("seen").is_some_and(|share| share > 0.01), "{}: something must be seen", case.name);
        assert!(number("ours_psnr_db").is_some_and(|db| db > 40.0), "{}: {:?}", case.name, case.parameters);
        assert!(case.peers.values().all(Option::is_none), "no peer was requested");
        assert!(["vtk", "vtk-gpu", "paraview"].iter().all(|peer| case.why.contains(peer)), "{}", case.why);
    }
    let blocks: Vec<_> = report.cases.iter().filter(|case| case.name.starts_with("memory")).collect();
    assert_eq!(blocks.len(), 2);
    // A quick run does not judge goals; the goal is the limit of the pool, for any volume.
    assert!(blocks.iter().all(|case| case.ours <= case.goal && case.meets_goal.is_none()), "{blocks:?}");
}
