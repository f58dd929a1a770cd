//! A parameter that is one number or a list of them.

use array::{Error, Result};
use serde::{Deserialize, Serialize};

/// One number, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// A single number.
    One(f64),
    /// A list of numbers.
    Many(Vec<f64>),
}

impl OneOrMany {
    /// Returns the numbers.
    #[must_use]
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Many(numbers) => numbers,
        }
    }

    /// Checks that there are 1 to `most` numbers, each in `low..=high`.
    ///
    /// # Errors
    /// `Invalid`; the message calls the numbers `what`.
    pub fn check(&self, what: &str, most: usize, low: f64, high: f64) -> Result<()> {
        let numbers = self.numbers();
        if numbers.is_empty() || numbers.len() > most {
            return Err(Error::invalid(format!("expected 1 to {most} {what}, found {}", numbers.len())));
        }
        match numbers.iter().find(|n| !(low..=high).contains(*n)) {
            Some(wrong) => {
                Err(Error::invalid(format!("expected {what} from {low} to {high}, found {wrong}")))
            }
            None => Ok(()),
        }
    }
}
