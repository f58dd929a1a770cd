//! `corridor.toml`: a user's defaults. Options take precedence over the environment, the environment over the file.
//!
//! It is read from the user's own directory only: a `corridor.toml` beside another person's data must not open ports or
//! set tokens.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use array::{Error, ErrorKind, Result};
use clap::{ArgMatches, Command, CommandFactory};
use client::directories::UserDirectories;

use crate::cli::Cli;

/// Variable with the name of another file.
const VARIABLE: &str = "CORRIDOR_CONFIG";
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 64 << 10;
/// Keys of the file: the names of options of the same meaning, with `_` for `-`.
const KEYS: &[&str] = &[
    "listen",
    "token",
    "cert",
    "key",
    "memory",
    "cache_dir",
    "link",
    "streams",
    "rails",
    "controller",
    "compression",
    "receive_rate",
    "rule",
    "max_rate",
];
/// Key whose value must be readable by its owner only.
const SECRET: &str = "token";

/// Parses the command line, with the file's values where neither an option nor the environment gives one.
///
/// # Errors
/// `Invalid`, naming file and line; `Denied` if others can read a token in it.
pub(crate) fn matches() -> Result<ArgMatches> {
    // First without the file, which help and errors on the command line do not need.
    let plain = Cli::command().get_matches();
    if plain.subcommand_name() == Some("help") {
        return Ok(plain);
    }
    let values = match std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from) {
        Some(path) => read(&path)?,
        None => match UserDirectories::of_user().map(|directories| directories.config_file()) {
            Ok(path) if path.exists() => read(&path)?,
            _ => return Ok(plain),
        },
    };
    Ok(with_defaults(Cli::command(), &values).get_matches())
}

/// A key of the file and its value.
type ConfigValue = (&'static str, String);

fn read(path: &Path) -> Result<Vec<ConfigValue>> {
    let at = |e: std::io::Error| Error::from(e).context(format!("configuration `{}`", path.display()));
    // A pipe is refused, because reading it could block.
    let about = std::fs::metadata(path).map_err(at)?;
    if !about.is_file() {
        return Err(Error::invalid(format!("expected a file: configuration `{}`", path.display())));
    }
    if about.len() > MAX_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_BYTES} bytes, found {}: configuration `{}`",
            about.len(),
            path.display()
        )));
    }
    let mut text = String::new();
    File::open(path).map_err(at)?.take(MAX_BYTES).read_to_string(&mut text).map_err(at)?;
    let values = parse(&text).map_err(|(line, what)| {
        Error::invalid(format!("configuration `{}`, line {line}: {what}", path.display()))
    })?;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 && values.iter().any(|(key, _)| *key == SECRET) {
        return Err(Error::new(
            ErrorKind::Denied,
            format!("expected mode 0600 of a file with a token, found {mode:04o}: `{}`", path.display()),
        ));
    }
    Ok(values)
}

/// Parses the values; the error has a line number and a message.
fn parse(text: &str) -> std::result::Result<Vec<ConfigValue>, (usize, String)> {
    let line = |at: usize| text.bytes().take(at).filter(|&b| b == b'\n').count() + 1;
    let table = toml::de::DeTable::parse(text)
        .map_err(|e| (line(e.span().map_or(0, |s| s.start)), e.message().to_owned()))?;
    let mut values = Vec::new();
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let bad = |what: String| Err((line(key.span().start), what));
        let Some(&known) = KEYS.iter().find(|known| **known == name) else {
            return bad(format!("expected one of the keys {}, found `{name}`", KEYS.join(", ")));
        };
        let Some(value) = value.get_ref().as_str() else {
            return bad(format!("expected a text in quotes for `{name}`"));
        };
        values.push((known, value.to_owned()));
    }
    let has = |name: &str| values.iter().any(|(key, _)| *key == name);
    if has("cert") != has("key") {
        return Err((1, "expected `cert` and `key` together, found one of them".into()));
    }
    Ok(values)
}

/// Sets the values as defaults of the options of each command.
fn with_defaults(command: Command, values: &[ConfigValue]) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |mut sub| {
            for (key, value) in values {
                if sub.get_arguments().any(|argument| argument.get_id() == *key) {
                    sub = sub.mut_arg(*key, |a| a.default_value(value.clone()));
                }
            }
            sub
        })
    })
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::cli::{self, topics};

    #[test]
    fn every_key_is_listed_with_its_variable() {
        let text = topics::find("environment").unwrap();
        for key in KEYS {
            let has_key = |line: &str| line.split_whitespace().nth(2) == Some(*key);
            assert!(text.lines().any(has_key), "{key}");
        }
    }

    #[test]
    fn errors_have_line_numbers() {
        for (text, line, part) in [
            (
                "listen = ':1'\nlisten_to = ':2'\n",
                2,
                "listen, token, cert, key, memory, cache_dir, link, streams, rails, controller, compression, receive_rate, rule, max_rate",
            ),
            ("\n\nmemory = 4", 3, "in quotes"),
            ("memory = '1GiB'\nmemory = '2GiB'", 2, "duplicate"),
            ("cert = 'a.pem'", 1, "together"),
            ("listen", 1, ""),
        ] {
            let (found, what) = parse(text).unwrap_err();
            assert_eq!(found, line, "{text}: {what}");
            assert!(what.contains(part), "{text}: {what}");
        }
    }

    #[test]
    fn options_take_precedence_over_the_file() {
        let values = parse("listen = ':1'\nmemory = '1GiB'\ntoken = 't0123456789abcdef'").unwrap();
        let serve = |arguments: &[&str]| {
            let matches = with_defaults(Cli::command(), &values).try_get_matches_from(arguments).unwrap();
            let cli::Command::Serve(serve) = Cli::from_arg_matches(&matches).unwrap().command else {
                panic!("expected `serve`")
            };
            serve.listening
        };
        let found = serve(&["corridor", "serve", "a.h5", "--listen", ":2"]);
        assert_eq!((found.listen.as_deref(), found.resources.memory.as_deref()), (Some(":2"), Some("1GiB")));
        let open = serve(&["corridor", "serve", "a.h5", "--no-token"]);
        assert!(open.no_token, "`--no-token` is accepted although the file has a token");
    }
}
