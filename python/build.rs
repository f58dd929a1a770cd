//! Links libpthread and libdl explicitly. A new glibc has their functions in libc and keeps both libraries empty, but
//! with an old glibc the module needs them (../crates/node/glibc).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("TARGET").as_deref() == Ok("x86_64-unknown-linux-gnu") {
        println!(
            "cargo::rustc-link-arg-cdylib=-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state"
        );
    }
}
