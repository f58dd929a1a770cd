//! Types that describe a field of a view: its values, and its representation in each interface.
//!
//! The fields themselves are the table in `fields.rs`.

/// Field of a view, with its option on the command line, its keyword in Python and its control in the viewer.
#[derive(Clone, Copy, Debug)]
pub struct ViewField {
    /// Name in JSON.
    pub name: &'static str,
    /// Former name in JSON; still read, never written.
    pub former: Option<&'static str>,
    /// Type of the values.
    pub field_type: FieldType,
    /// Description, one or more sentences.
    pub help: &'static str,
    /// Option of the command line that sets it.
    pub option: Option<FieldOption>,
    /// Keyword of Python that sets it.
    pub keyword: Option<FieldKeyword>,
    /// Control of the viewer that is generated from this description; other fields have their own control, or
    /// none.
    pub control: FieldControl,
}

/// Values that a field takes.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// Text.
    Text,
    /// True or false.
    Flag,
    /// Whole number, 0 or more.
    Index {
        /// Largest allowed number.
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
    /// Two corners `[[x, y, z], [x, y, z]]`, fractions from 0 to 1, low below high.
    Box,
    /// Point of an opacity curve `[value, alpha]`, alpha from 0 to 1.
    OpacityPoint,
    /// Indices by axis name.
    Indices,
    /// Several values of one type.
    List {
        /// Type of each value.
        of: &'static Self,
        /// Smallest number of values.
        least: usize,
        /// Largest number of values.
        most: usize,
    },
    /// Object with members.
    Record(&'static FieldRecord),
    /// Object with exactly one of several members, each an object.
    OneOf(&'static FieldUnion),
    /// Value of another type, or null.
    Nullable(&'static Self),
}

/// Allowed range of numbers; infinite bounds are absent.
#[derive(Clone, Copy, Debug)]
pub struct NumberRange {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// True if `low` itself is not allowed.
    pub is_above_low: bool,
    /// True if `high` itself is not allowed.
    pub is_below_high: bool,
}

/// Set of names.
#[derive(Clone, Copy, Debug)]
pub struct FieldChoice {
    /// Name of the type.
    pub name: &'static str,
    /// Name of the list of all names in generated code.
    pub list: &'static str,
    /// Description.
    pub help: &'static str,
    /// Names, in the order of the list.
    pub names: &'static [ChoiceName],
}

/// Name in a set.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceName {
    /// Canonical name.
    pub name: &'static str,
    /// Alternative name on the command line and in Python.
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
    /// Members; members of later versions are preserved.
    pub members: &'static [FieldMember],
}

/// Member of an object.
#[derive(Clone, Copy, Debug)]
pub struct FieldMember {
    /// Name in JSON.
    pub name: &'static str,
    /// Former name in JSON; still read, never written.
    pub former: Option<&'static str>,
    /// Type of the values.
    pub field_type: FieldType,
    /// True if the member may be omitted.
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
    /// Name of each member, and the only member of its object.
    pub variants: &'static [(&'static str, FieldMember)],
}

/// Option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct FieldOption {
    /// Name, without `--`.
    pub name: &'static str,
    /// Former name; still accepted, not listed.
    pub former: Option<&'static str>,
    /// Name of the value in help; empty for options without a value, and for choices, whose names are listed.
    pub value_name: &'static str,
    /// Description for `-h`; empty if the field's own is used.
    pub help: &'static str,
    /// Further description for `--help`; may be empty.
    pub more: &'static str,
    /// Values that the option takes.
    pub form: OptionForm,
}

/// Values of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// One value.
    Value,
    /// One value at a time; the option may be repeated.
    Repeated,
    /// `on` or `off`.
    Switch,
    /// No value: the option sets the field to true.
    Present,
    /// One value after `=`, or none for this default.
    Assigned(&'static str),
}

/// Keyword of Python.
#[derive(Clone, Copy, Debug)]
pub struct FieldKeyword {
    /// Name.
    pub name: &'static str,
    /// Former name; still accepted, with a warning.
    pub former: Option<&'static str>,
    /// Type annotation, without `None`; empty if it follows from the field's type.
    pub annotation: &'static str,
    /// Further description; may be empty.
    pub more: &'static str,
}

/// Control of the viewer.
#[derive(Clone, Copy, Debug)]
pub enum FieldControl {
    /// No generated control.
    None,
    /// Checkbox.
    Switch {
        /// Label beside the checkbox.
        label: &'static str,
    },
    /// Slider over the allowed numbers.
    Slider {
        /// Label above the slider.
        label: &'static str,
        /// Step of the slider.
        step: f64,
    },
}

impl ViewField {
    /// Returns the type without null.
    #[must_use]
    pub fn plain_type(&self) -> &FieldType {
        if let FieldType::Nullable(plain) = self.field_type { plain } else { &self.field_type }
    }
}

impl NumberRange {
    /// Range of all finite numbers.
    pub const ALL: Self = Self::between(f64::NEG_INFINITY, f64::INFINITY);

    /// Returns the range from `low` to `high`, both included.
    #[must_use]
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high, is_above_low: false, is_below_high: false }
    }

    /// Returns the range above `low`, up to and including `high`.
    #[must_use]
    pub const fn above(low: f64, high: f64) -> Self {
        Self { low, high, is_above_low: true, is_below_high: false }
    }

    /// Returns the range above `low` and below `high`.
    #[must_use]
    pub const fn inside(low: f64, high: f64) -> Self {
        Self { low, high, is_above_low: true, is_below_high: true }
    }

    /// Returns true if a number is finite and allowed.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        let is_high_enough = if self.is_above_low { number > self.low } else { number >= self.low };
        let is_low_enough = if self.is_below_high { number < self.high } else { number <= self.high };
        number.is_finite() && is_high_enough && is_low_enough
    }

    /// Describes the range in words, such as `a number from 0 to 1`.
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
