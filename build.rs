//! Names glibc's libraries for threads and loading, which a new glibc keeps empty: programs linked on it need them to run on an old one
//! (crates/node/glibc).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("TARGET").as_deref() == Ok("x86_64-unknown-linux-gnu") {
        println!(
            "cargo::rustc-link-arg-bins=-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state"
        );
    }
}
