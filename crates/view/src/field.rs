//! Description of a field of a view: what its values are, and how people reach it.
//!
//! Types only; the fields themselves are the table in `fields.rs`.

/// Field of a view, with its option on the command line, its keyword in Python and its control in the viewer.
#[derive(Clone, Copy, Debug)]
pub struct ViewField {
    /// Name in JSON.
    pub name: &'static str,
    /// Name in JSON before; still read, never written.
    pub former: Option<&'static str>,
    /// Values that it takes.
    pub field_type: FieldType,
    /// Description, one or more sentences.
    pub help: &'static str,
    /// Option of the command line that sets it.
    pub option: Option<FieldOption>,
    /// Keyword of Python that sets it.
    pub keyword: Option<FieldKeyword>,
    /// Control of the viewer that is made from this description; fields without one have their own, or none.
    pub control: FieldControl,
}

/// Values that a field takes.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// Text.
    Text,
    /// True or false.
    Flag,
    /// Whole number from 0 on.
    Index {
        /// Largest number.
        last: Option<u64>,
    },
    /// Number.
    Number(NumberRange),
    /// One of several names.
    Choice(&'static FieldChoice),
    /// Color `[r, g, b]`, sRGB, whole numbers from 0 to 255.
    Color,
    /// Position or direction `[x, y, z]`.
    Point,
    /// Two values `[low, high]`, low below high.
    Range,
    /// Two corners `[[x, y, z], [x, y, z]]`, shares from 0 to 1, low below high.
    Box,
    /// Point of an opacity curve `[value, alpha]`, alpha from 0 to 1.
    OpacityPoint,
    /// Indices by names of axes.
    Indices,
    /// Several values of one type.
    List {
        /// Type of each.
        of: &'static Self,
        /// Fewest values.
        least: usize,
        /// Most values.
        most: usize,
    },
    /// Object with members.
    Record(&'static FieldRecord),
    /// Object with exactly one of several members, each an object.
    OneOf(&'static FieldUnion),
    /// Value of another type, or null.
    Nullable(&'static Self),
}

/// Numbers that are allowed; infinite bounds are none.
#[derive(Clone, Copy, Debug)]
pub struct NumberRange {
    /// Least number.
    pub low: f64,
    /// Greatest number.
    pub high: f64,
    /// Whether `low` itself is not allowed.
    pub is_above_low: bool,
    /// Whether `high` itself is not allowed.
    pub is_below_high: bool,
}

/// Names of which a field is one.
#[derive(Clone, Copy, Debug)]
pub struct FieldChoice {
    /// Name of the type.
    pub name: &'static str,
    /// Name of the list of all.
    pub list: &'static str,
    /// Description.
    pub help: &'static str,
    /// The names, as they are listed.
    pub names: &'static [ChoiceName],
}

/// Name that can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceName {
    /// The name.
    pub name: &'static str,
    /// Other name on the command line and in Python.
    pub alias: Option<&'static str>,
    /// Description.
    pub help: &'static str,
}

/// Object with members.
#[derive(Clone, Copy, Debug)]
pub struct FieldRecord {
    /// Name of the type.
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    /// Members; members of later versions are kept.
    pub members: &'static [FieldMember],
}

/// Member of an object.
#[derive(Clone, Copy, Debug)]
pub struct FieldMember {
    /// Name in JSON.
    pub name: &'static str,
    /// Name in JSON before; still read, never written.
    pub former: Option<&'static str>,
    /// Values that it takes.
    pub field_type: FieldType,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Description.
    pub help: &'static str,
}

/// Object with exactly one of several members.
#[derive(Clone, Copy, Debug)]
pub struct FieldUnion {
    /// Name of the type.
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    /// Name of each member, and the only member of the object that it is.
    pub variants: &'static [(&'static str, FieldMember)],
}

/// Option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct FieldOption {
    /// Name, without `--`.
    pub name: &'static str,
    /// Name before; still taken, not listed.
    pub former: Option<&'static str>,
    /// Name of the value in help; empty for options without one, and for choices, whose names are listed.
    pub value_name: &'static str,
    /// Description for `-h`; empty where the field's own will do.
    pub help: &'static str,
    /// Further description for `--help`; may be empty.
    pub more: &'static str,
    /// Values that follow it.
    pub form: OptionForm,
}

/// Values that follow an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// One.
    Value,
    /// One at a time; the option may be given several times.
    Repeated,
    /// `on` or `off`.
    Switch,
    /// None: the option sets the field to true.
    Present,
    /// One behind `=`, or none for this one.
    Assigned(&'static str),
}

/// Keyword of Python.
#[derive(Clone, Copy, Debug)]
pub struct FieldKeyword {
    /// Name.
    pub name: &'static str,
    /// Name before; still taken, with a warning.
    pub former: Option<&'static str>,
    /// Type annotation, without `None`; empty where the field's type says it.
    pub annotation: &'static str,
    /// Further description; may be empty.
    pub more: &'static str,
}

/// Control of the viewer.
#[derive(Clone, Copy, Debug)]
pub enum FieldControl {
    /// None that is made from the description.
    None,
    /// Box to tick.
    Switch {
        /// Label beside it.
        label: &'static str,
    },
    /// Slider over the numbers that the field takes.
    Slider {
        /// Label above it.
        label: &'static str,
        /// Distance of its positions.
        step: f64,
    },
}

impl ViewField {
    /// Type without the null that it may be as well.
    #[must_use]
    pub fn plain_type(&self) -> &FieldType {
        if let FieldType::Nullable(plain) = self.field_type { plain } else { &self.field_type }
    }
}

impl NumberRange {
    /// All finite numbers.
    pub const ALL: Self = Self::between(f64::NEG_INFINITY, f64::INFINITY);

    /// Numbers from `low` to `high`, both included.
    #[must_use]
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high, is_above_low: false, is_below_high: false }
    }

    /// Numbers above `low`, up to `high`.
    #[must_use]
    pub const fn above(low: f64, high: f64) -> Self {
        Self { low, high, is_above_low: true, is_below_high: false }
    }

    /// Numbers above `low` and below `high`.
    #[must_use]
    pub const fn inside(low: f64, high: f64) -> Self {
        Self { low, high, is_above_low: true, is_below_high: true }
    }

    /// Whether a number is finite and allowed.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        let is_high_enough = if self.is_above_low { number > self.low } else { number >= self.low };
        let is_low_enough = if self.is_below_high { number < self.high } else { number <= self.high };
        number.is_finite() && is_high_enough && is_low_enough
    }

    /// The numbers in words, such as `a number from 0 to 1`.
    #[must_use]
    pub fn words(&self) -> String {
        let low = match (self.low.is_finite(), self.is_above_low) {
            (false, _) => String::new(),
            (true, true) => format!(" above {}", self.low),
            (true, false) => format!(" from {}", self.low),
        };
        let high = match (self.high.is_finite(), self.is_below_high, self.is_above_low) {
            (false, ..) => String::new(),
            (true, true, _) => format!(" and below {}", self.high),
            (true, false, true) => format!(" and up to {}", self.high),
            (true, false, false) => format!(" to {}", self.high),
        };
        format!("a number{low}{high}")
    }
}
