//! On x86-64 Linux, links against old versions of glibc's symbols, so that programs linked with a new glibc run with
//! glibc 2.28 (2018).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=glibc");
    if env::var("TARGET").as_deref() != Ok("x86_64-unknown-linux-gnu") {
        return;
    }
    cc::Build::new()
        .files(["glibc/old.c", "glibc/old.S"])
        // The compiler must not treat the functions defined here as builtins.
        .flag("-fno-builtin")
        .pic(true)
        .cargo_metadata(false)
        .compile("corridor_glibc");
    println!("cargo::rustc-link-search=native={}", env::var("OUT_DIR").unwrap_or_default());
    // The whole archive, so that its symbols take precedence over those of the C library, whatever the order of
    // linking.
    println!("cargo::rustc-link-lib=static:+whole-archive=corridor_glibc");
}
