//! `corridor bench` and `corridor lab` of a program that was built without them.

use array::Error;

use crate::cli::WithoutLab;

/// Returns the error with the command that builds and runs a program with the feature.
pub(crate) fn refusal(command: &str, options: &WithoutLab) -> Error {
    let arguments: String = options.arguments.iter().map(|argument| format!(" {argument}")).collect();
    let make = if command == "bench" { " (all benchmarks: `make bench`)" } else { "" };
    Error::invalid(format!(
        "this program was built without `corridor {command}`; in the sources of Corridor, run \
         `cargo run --release --features lab -- {command}{arguments}`{make}"
    ))
}

#[cfg(test)]
mod tests {
    use array::ErrorKind;
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn suggested_command_has_all_arguments() {
        let arguments = ["corridor", "bench", "access", "--quick", "--json"];
        let Command::Bench(options) = Cli::try_parse_from(arguments).unwrap().command else {
            panic!("expected `bench`")
        };
        let error = refusal("bench", &options);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains("--features lab -- bench access --quick --json`"), "{text}");
    }
}
