//! On x86-64 Linux, links old versions of glibc's symbols, so that programs linked on a new glibc run on glibc 2.28 (2018).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=glibc");
    if env::var("TARGET").as_deref() != Ok("x86_64-unknown-linux-gnu") {
        return;
    }
    cc::Build::new()
        .files(["glibc/old.c", "glibc/old.S"])
        // A call of `hypot` in them would be one of themselves.
        .flag("-fno-builtin")
        .pic(true)
        .cargo_metadata(false)
        .compile("corridor_glibc");
    println!("cargo::rustc-link-search=native={}", env::var("OUT_DIR").unwrap_or_default());
    // All of it, first or last: what is defined here is not looked for in the C library.
    println!("cargo::rustc-link-lib=static:+whole-archive=corridor_glibc");
}
