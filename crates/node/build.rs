//! Builds again when the viewer's assets changed: they are embedded. Where programs are linked on a newer glibc than that of 2018, they get
//! the versions of its names that this one has.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../web/dist");
    println!("cargo::rerun-if-changed=glibc");
    let of_target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if (of_target("ARCH").as_str(), of_target("OS").as_str(), of_target("ENV").as_str())
        != ("x86_64", "linux", "gnu")
    {
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
