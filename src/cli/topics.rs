//! Topics of `corridor help`: texts that do not belong to a single command.

/// Name and text of each topic.
pub(crate) const ALL: [(&str, &str); 3] = [
    ("urls", include_str!("help/urls.txt")),
    ("exit-codes", include_str!("help/exit-codes.txt")),
    ("environment", include_str!("help/environment.txt")),
];

/// Returns the text of a topic.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    ALL.into_iter().find(|(topic, _)| *topic == name).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_variable_is_listed_with_its_option() {
        let text = find("environment").unwrap();
        let command = Cli::command();
        let mut variables = 0;
        for argument in command.get_subcommands().flat_map(|command| command.get_arguments()) {
            let Some(variable) = argument.get_env().and_then(|name| name.to_str()) else { continue };
            let option = format!("--{}", argument.get_long().unwrap());
            let has_both = |line: &str| line.split_whitespace().take(2).eq([variable, option.as_str()]);
            assert!(text.lines().any(has_both), "{variable} {option}");
            variables += 1;
        }
        assert!(variables > 0);
    }

    #[test]
    fn lines_fit_a_narrow_terminal() {
        for (name, text) in ALL {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}");
        }
    }
}
