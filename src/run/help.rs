//! `corridor help`

use std::ffi::OsString;

use array::{Error, Result};
use clap::{Command, CommandFactory};

use crate::cli::{Cli, HelpOptions, topics};
use crate::common::print;

/// Option that prints the help of a command.
const OPTION: &str = "--help";

pub(crate) fn run(options: &HelpOptions) -> Result<()> {
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    if let [name] = words[..]
        && let Some(text) = topics::find(name)
    {
        return print(text.trim_end());
    }
    let mut command = Cli::command();
    if !has_command(&command, &words) {
        return Err(Error::invalid(format!(
            "there is no command or topic `{}`; `corridor --help` lists the commands, and the topics are {}",
            words.join(" "),
            topics::ALL.map(|(name, _)| name).join(", ")
        )));
    }
    // Parsed as with `--help`, so that both print the same.
    let program = std::env::args_os().next().unwrap_or_else(|| command.get_name().into());
    let arguments = words.into_iter().chain([OPTION]).map(OsString::from);
    match command.try_get_matches_from_mut(std::iter::once(program).chain(arguments)) {
        Err(help) => help.exit(),
        Ok(_) => Err(Error::internal("clap did not print the help")),
    }
}

/// Returns whether the words name a command or a subcommand such as `cache clear`. The empty list stands for the
/// program.
fn has_command(program: &Command, words: &[&str]) -> bool {
    words.iter().try_fold(program, |command, word| command.find_subcommand(word)).is_some()
}

#[cfg(test)]
mod tests {
    use array::ErrorKind;

    use super::*;

    #[test]
    fn commands_and_subcommands_are_found() {
        let command = Cli::command();
        let none: &[&str] = &[];
        for words in [none, &["get"], &["cache", "clear"], &["help"]] {
            assert!(has_command(&command, words), "{words:?}");
        }
        for words in [&["nonsense"][..], &["get", "clear"], &["urls"], &[""]] {
            assert!(!has_command(&command, words), "{words:?}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_topics() {
        let error = run(&HelpOptions { words: vec!["nonsense".into()] }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        for part in ["`nonsense`", "urls, exit-codes, environment"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
