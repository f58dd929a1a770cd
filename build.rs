//! Older versions of glibc have threads and loading in libraries of their own, which newer ones keep empty: a program that is linked on a newer
//! one has to name them (crates/node/glibc).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of_target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if (of_target("ARCH").as_str(), of_target("OS").as_str(), of_target("ENV").as_str())
        == ("x86_64", "linux", "gnu")
    {
        println!(
            "cargo::rustc-link-arg-bins=-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state"
        );
    }
}
