//! Sequence of pictures: their time steps and cameras.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use array::{Error, Result};
use render::{Camera, CameraPath};
use serde_json::{Map, Value};

use super::MAX_PICTURES;

/// Maximum size of a file with the cameras of a journey, in bytes.
const MAX_JOURNEY_BYTES: u64 = 4 << 20;

/// Time steps from `start` to before `stop`; by default all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSteps {
    start: Option<u64>,
    stop: Option<u64>,
    step: u64,
}

impl Default for TimeSteps {
    fn default() -> Self {
        Self { start: None, stop: None, step: 1 }
    }
}

impl FromStr for TimeSteps {
    type Err = Error;

    /// Parses `START:STOP[:STEP]` as in a selection; each part is optional.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected time steps such as `3`, `0:24` or `::6` (START:STOP:STEP), found `{text}`"
            ))
        };
        let number = |part: &str| match part.trim() {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| bad()),
        };
        let parts: Vec<Option<u64>> = text.split(':').map(number).collect::<Result<_>>()?;
        match *parts.as_slice() {
            [start, stop] => Ok(Self { start, stop, step: 1 }),
            [start, stop, step] if step != Some(0) => Ok(Self { start, stop, step: step.unwrap_or(1) }),
            _ => Err(bad()),
        }
    }
}

impl TimeSteps {
    /// Returns the number of steps, if both ends are given.
    pub(super) fn count(self) -> Option<u32> {
        let (start, stop) = (self.start.unwrap_or(0), self.stop?);
        u32::try_from(stop.checked_sub(start)?.div_ceil(self.step)).ok()
    }

    /// Returns the time steps of an axis with `count` steps.
    pub(super) fn of(self, count: u64) -> Result<Vec<u64>> {
        let (start, stop) = (self.start.unwrap_or(0), self.stop.unwrap_or(count));
        if start >= stop || stop > count {
            return Err(Error::invalid(format!(
                "expected at least one time step between 0 and {count} (STOP is not included), found {start}:{stop}"
            )));
        }
        let steps = (stop - start).div_ceil(self.step);
        if steps > u64::from(MAX_PICTURES) {
            return Err(Error::too_large(format!(
                "expected at most {MAX_PICTURES} time steps, found {steps}"
            )));
        }
        Ok((0..steps).map(|number| start + number * self.step).collect())
    }
}

/// Motion of the camera.
#[derive(Clone, Debug, PartialEq)]
pub enum Journey {
    /// Rotation about the point that it looks at, in degrees.
    Turn(f64),
    /// Path through the cameras of a JSON file: a list of cameras as in a view, or of views.
    Through(PathBuf, CameraPath),
}

impl FromStr for Journey {
    type Err = Error;

    /// Parses `turn`, `turn:DEGREES`, or the name of a file, with `straight:` before it for straight lines.
    fn from_str(text: &str) -> Result<Self> {
        let degrees = match text.split_once(':') {
            None if text == "turn" => "360",
            Some(("turn", degrees)) => degrees,
            Some(("straight", file)) => return Ok(Self::Through(file.into(), CameraPath::Straight)),
            _ => return Ok(Self::Through(text.into(), CameraPath::Smooth)),
        };
        let degrees: Option<f64> = degrees.trim().parse().ok().filter(|d: &f64| d.is_finite());
        degrees.map(Self::Turn).ok_or_else(|| {
            Error::invalid(format!("expected `turn`, `turn:DEGREES` or a file of cameras, found `{text}`"))
        })
    }
}

impl Journey {
    /// Returns the cameras of `pictures` pictures, beginning with `first`.
    pub(super) fn cameras(&self, first: &Camera, pictures: u32) -> Result<Vec<Camera>> {
        match self {
            Self::Turn(degrees) => Ok(render::turn(first, *degrees, pictures)),
            Self::Through(path, shape) => {
                let failed = |e: Error| {
                    e.context(format!(
                        "a journey is `turn`, `turn:DEGREES`, a file of cameras, or `straight:` and a file; reading `{}`",
                        path.display()
                    ))
                };
                let cameras = cameras_of(path).map_err(failed)?;
                render::through(&cameras, pictures, *shape).map_err(failed)
            }
        }
    }
}

/// Reads the cameras that a file lists.
fn cameras_of(path: &Path) -> Result<Vec<Camera>> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(MAX_JOURNEY_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_JOURNEY_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_JOURNEY_BYTES} bytes of cameras, found more"
        )));
    }
    let bad = |why: &dyn std::fmt::Display| {
        Error::invalid(format!(
            "expected a JSON list of cameras as in a view, or of views with cameras, found something else: {why}"
        ))
    };
    let list: Vec<Map<String, Value>> = serde_json::from_slice(&text).map_err(|e| bad(&e))?;
    let camera = |mut entry: Map<String, Value>| {
        let value = entry.remove("camera").unwrap_or(Value::Object(entry));
        serde_json::from_value(value).map_err(|e| bad(&e))
    };
    list.into_iter().map(camera).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn time_steps_are_parsed_like_selections() {
        let steps = |text: &str, count| text.parse::<TimeSteps>().and_then(|times| times.of(count));
        assert_eq!(steps(":", 3).unwrap(), [0, 1, 2]);
        assert_eq!(steps("1:8:3", 10).unwrap(), [1, 4, 7]);
        assert_eq!(steps("::6", 24).unwrap(), [0, 6, 12, 18]);
        for (text, count) in [
            ("3", 9),
            ("a:b", 9),
            ("0:3:0", 9),
            ("5:3", 9),
            ("0:10", 9),
            ("1:2:3:4", 9),
            (":", 0),
            (":", 1 << 40),
        ] {
            assert!(steps(text, count).is_err(), "{text} of {count}");
        }
    }

    #[test]
    fn journeys_are_parsed() {
        let read = |text: &str| text.parse::<Journey>();
        assert_eq!(read("turn").unwrap(), Journey::Turn(360.0));
        assert_eq!(read("turn:-90").unwrap(), Journey::Turn(-90.0));
        let through = |file: &str, shape| Journey::Through(file.into(), shape);
        assert_eq!(read("paths/to.json").unwrap(), through("paths/to.json", CameraPath::Smooth));
        assert_eq!(read("straight:to.json").unwrap(), through("to.json", CameraPath::Straight));
        read("turn:x").unwrap_err();
        read("turn:nan").unwrap_err();
    }

    #[test]
    fn a_file_of_cameras_or_of_views_is_a_journey() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("path.json");
        let camera = json!({"eye": [0.0, -4.0, 0.0], "target": [0.0, 0.0, 0.0], "up": [0.0, 0.0, 1.0],
            "projection": {"perspective": {"fov_y_rad": 0.5}}});
        std::fs::write(&path, json!([camera, {"v": 1, "camera": camera}]).to_string()).unwrap();
        assert_eq!(cameras_of(&path).unwrap().len(), 2);
        for bad in ["", "{}", "[1]", "[{}]", "[{\"camera\": 3}]"] {
            std::fs::write(&path, bad).unwrap();
            assert!(cameras_of(&path).is_err(), "{bad}");
        }
        cameras_of(&folder.path().join("absent.json")).unwrap_err();
    }
}
