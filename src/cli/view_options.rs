//! Options that set fields of a view, generated from the table of fields.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use view::{ChoiceName, FIELDS, FieldChoice, FieldOption, FieldType, OptionForm, ViewField, ViewRequest};

/// Field of the background.
const BACKGROUND: &str = "background";

/// Options that set fields of a view, with the values from the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewOptions {
    given: Vec<(&'static ViewField, FieldOption, Value)>,
}

impl ViewOptions {
    /// Returns the fields that the options set.
    ///
    /// # Errors
    /// `Invalid` for a value that its field does not accept.
    pub(crate) fn request(&self) -> array::Result<ViewRequest> {
        let mut request = ViewRequest::default();
        for (field, _, written) in &self.given {
            if self.is_transparent() && field.name == BACKGROUND {
                continue;
            }
            request.set(field.name, written)?;
        }
        Ok(request)
    }

    /// Returns the text of the option that sets a field, if it is given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(field, ..)| field.name == name)?.2.as_str()
    }

    /// Returns whether the picture has no background, which is not a field of a view.
    pub(crate) fn is_transparent(&self) -> bool {
        self.text(BACKGROUND) == Some("transparent")
    }

    /// Returns the fields for which options are given, and the names of the options.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.given.iter().map(|(field, option, _)| (field.name, option.name))
    }
}

impl Args for ViewOptions {
    fn augment_args(command: Command) -> Command {
        options().fold(command, |command, (field, option)| command.arg(arg(field, option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ViewOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let written = |(field, option): (&'static ViewField, FieldOption)| {
            Some((field, option, written(matches, field.name, option.form)?))
        };
        Ok(Self { given: options().filter_map(written).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the fields that have options.
fn options() -> impl Iterator<Item = (&'static ViewField, FieldOption)> {
    FIELDS.iter().filter_map(|field| Some((field, field.option?)))
}

fn written(matches: &ArgMatches, id: &str, form: OptionForm) -> Option<Value> {
    match form {
        OptionForm::Present => matches.get_flag(id).then_some(Value::Bool(true)),
        OptionForm::Repeated => {
            let texts = matches.get_many::<String>(id)?;
            Some(texts.map(|text| Value::from(text.as_str())).collect())
        }
        OptionForm::Value | OptionForm::Switch | OptionForm::Assigned(_) => {
            matches.get_one::<String>(id).map(|text| Value::from(text.as_str()))
        }
    }
}

fn arg(field: &'static ViewField, option: FieldOption) -> Arg {
    let help = if option.help.is_empty() { field.help } else { option.help };
    let mut arg = Arg::new(field.name).long(option.name).help(help.trim_end_matches('.'));
    if !option.more.is_empty() {
        arg = arg.long_help(format!("{help}\n\n{}", option.more));
    }
    if let Some(former) = option.former {
        arg = arg.alias(former);
    }
    arg = match (option.form, option.value_name) {
        (OptionForm::Present, _) => arg,
        (_, "") => arg.value_name(option.name.to_uppercase()),
        (_, name) => arg.value_name(name),
    };
    match (option.form, *field.plain_type()) {
        (OptionForm::Present, _) => arg.action(ArgAction::SetTrue),
        // Values may be negative.
        (OptionForm::Repeated, _) => arg.action(ArgAction::Append).allow_hyphen_values(true),
        (OptionForm::Switch, _) => arg.value_parser(PossibleValuesParser::new(["on", "off"])),
        (OptionForm::Assigned(text), _) => {
            arg.num_args(0..=1).require_equals(true).default_missing_value(text)
        }
        (OptionForm::Value, FieldType::Choice(choice)) => arg.value_parser(names(choice)),
        (OptionForm::Value, FieldType::Number(_)) => arg.allow_negative_numbers(true),
        (OptionForm::Value, _) => arg,
    }
}

fn names(choice: &'static FieldChoice) -> PossibleValuesParser {
    let value = |name: &'static ChoiceName| {
        let value = PossibleValue::new(name.name).help(name.help.trim_end_matches('.'));
        match name.alias {
            Some(alias) => value.alias(alias),
            None => value,
        }
    };
    PossibleValuesParser::new(choice.names.iter().map(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> ViewOptions {
        let command = ViewOptions::augment_args(Command::new("render").no_binary_name(true));
        ViewOptions::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn options_become_fields() {
        let options = parsed(&[
            "--mode=mip",
            "--iso",
            "-3:#c03020",
            "--iso",
            "4",
            "--colour-by",
            "t",
            "--stereo",
            "--grids",
            "--shading",
            "on",
        ]);
        let request = options.request().unwrap();
        assert_eq!(request.text("mode"), Some("maximum"));
        assert_eq!(request.get("surfaces").unwrap()[0]["value"], -3.0);
        assert_eq!(request.get("surfaces").unwrap()[1]["value"], 4.0);
        assert_eq!(request.get("color_by").unwrap()["array"], "t");
        assert_eq!(request.get("stereo").unwrap().as_f64(), Some(1.0 / 30.0));
        assert_eq!(request.get("grids"), Some(&Value::Bool(true)));
        assert_eq!(request.get("shading"), Some(&Value::Bool(true)));
        assert_eq!(request.get("camera"), None);
        assert!(!options.is_transparent());
        let background = |text: &str| parsed(&["--background", text]).request();
        assert_eq!(background("white").unwrap().get("background").unwrap()[2], 255);
        assert_eq!(background("#102030").unwrap().get("background").unwrap()[0], 16);
        assert!(background("#10203").unwrap_err().to_string().contains("`light`"));
        assert_eq!(background("transparent").unwrap(), ViewRequest::default());
        let names: Vec<&str> = options.names().map(|(_, option)| option).collect();
        assert_eq!(names, ["color-by", "iso", "mode", "shading", "grids", "stereo"]);
    }

    #[test]
    fn options_that_are_not_given_set_no_field() {
        assert_eq!(parsed(&[]).request().unwrap(), ViewRequest::default());
        assert_eq!(parsed(&["--camera", "top"]).text("camera"), Some("top"));
    }
}
