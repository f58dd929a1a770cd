//! Compiles the calls of MPI, which is found by its own compiler's wrapper (`mpicc`, or what `MPICC` names).

fn main() {
    println!("cargo:rerun-if-changed=src/calls.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    #[cfg(feature = "mpi")]
    calls();
}

/// The wrapper knows where headers and libraries are, whichever MPI it is of: it compiles, and says what it would link.
#[cfg(feature = "mpi")]
#[expect(clippy::expect_used, reason = "a build that cannot go on says why")]
fn calls() {
    let wrapper = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    cc::Build::new()
        .compiler(&wrapper)
        .file("src/calls.c")
        .warnings_into_errors(true)
        .compile("corridor_mpi_calls");
    let ask = |option: &str| std::process::Command::new(&wrapper).arg(option).output();
    // Open MPI and MPICH each have their own word for it.
    let told = ["-showme:link", "-link_info"].into_iter().filter_map(|option| ask(option).ok());
    let flags = told
        .filter(|output| output.status.success())
        .find_map(|output| String::from_utf8(output.stdout).ok())
        .expect("expected an MPI compiler that tells what it links (mpicc -showme:link or -link_info)");
    for flag in flags.split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
