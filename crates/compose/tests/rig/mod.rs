//! Ranks on threads of their own, for the tests.

use corridor_compose::{ThreadRank, threads};

/// Returns the results of `work` at each of `count` ranks.
pub(crate) fn together<T: Send>(count: usize, work: impl Fn(&ThreadRank) -> T + Sync) -> Vec<T> {
    let ranks = threads(count).expect("a legal number of ranks");
    let work = &work;
    std::thread::scope(|scope| {
        let start = |rank: ThreadRank| {
            let run = move || work(&rank);
            std::thread::Builder::new().name("rank".into()).spawn_scoped(scope, run).expect("a thread")
        };
        let started: Vec<_> = ranks.into_iter().map(start).collect();
        started.into_iter().map(|thread| thread.join().expect("a rank that does not panic")).collect()
    })
}
