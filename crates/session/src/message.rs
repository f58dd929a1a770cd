//! Messages between participants and the viewing node: the JSON of `join`, its items and its notes.
//!
//! Shapes only, bounded and checked; what they cause is decided in [`crate::Room`] and in the frame loop.

use array::{Axis, DType, Error, Level, LevelOrigin, Meaning, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use view::View;

use crate::{ParticipantId, Role, ValueSummary};

/// Largest note or join parameters, bytes: the wire's limit for both.
pub const MAX_NOTE_BYTES: usize = 1 << 20;
/// Longest name of a participant or session, bytes; longer ones are cut.
pub const MAX_NAME_BYTES: usize = 64;
/// Smallest side of a picture, pixels; smaller wishes are raised to it.
pub const MIN_PICTURE_SIDE: u32 = 16;
/// Largest side of a picture, pixels; larger wishes are lowered to it.
pub const MAX_PICTURE_SIDE: u32 = 4096;
/// Most pixels of a picture: a little more than a 4K screen. While it is drawn a pixel costs 32 bytes, and as PNG
/// it still fits an item.
pub const MAX_PICTURE_PIXELS: u32 = 8 << 20;

/// Size of a picture, pixels; both sides always within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureSize {
    width: u32,
    height: u32,
    is_whole: bool,
}

impl PictureSize {
    /// The nearest legal size; with too many pixels both sides shrink alike.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shrinks a small number")]
    pub fn new(width: u32, height: u32) -> Self {
        let side = |n: u32| n.clamp(MIN_PICTURE_SIDE, MAX_PICTURE_SIDE);
        let requested = [width, height];
        let (width, height) = (side(width), side(height));
        let share = f64::from(MAX_PICTURE_PIXELS) / (f64::from(width) * f64::from(height));
        let shrunk = |n: u32| side((f64::from(n) * share.min(1.0).sqrt()) as u32);
        let size = [shrunk(width), shrunk(height)];
        let is_whole = size[0] >= requested[0] && size[1] >= requested[1];
        Self { width: size[0], height: size[1], is_whole }
    }

    /// False where more pixels were requested: the picture is enlarged to be shown.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.is_whole
    }

    /// Pixels across.
    #[must_use]
    pub fn width(self) -> u32 {
        self.width
    }

    /// Pixels down.
    #[must_use]
    pub fn height(self) -> u32 {
        self.height
    }
}

/// Parameters of the operation `join`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinParams {
    /// Which session of the node; empty means the main one.
    #[serde(default)]
    pub session: String,
    /// Name of this participant, as the others see it.
    #[serde(default)]
    pub name: String,
    /// Pixels across that the participant can show.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

impl JoinParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `Invalid` when they are not the documented JSON.
    pub fn parse(text: &[u8]) -> Result<Self> {
        read(text, "parameters of `join`")
    }

    /// The picture size asked for, within the limits.
    #[must_use]
    pub fn size(&self) -> PictureSize {
        PictureSize::new(self.width, self.height)
    }
}

/// A change of one's view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewChange {
    /// Counts up; a change that is not newer than the last one is dropped.
    pub seq: u64,
    /// The fields that changed.
    pub view: Map<String, Value>,
    /// More changes follow at once: speed before sharpness.
    #[serde(default)]
    pub moving: bool,
}

/// Message from a participant to a running `join`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ParticipantNote {
    /// My view changed.
    View(ViewChange),
    /// My window changed.
    Resize {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// This frame (and all before it) is on my screen.
    Shown {
        /// Its number.
        frame: u64,
    },
    /// Send an exact picture of what is shown.
    Still,
}

impl ParticipantNote {
    /// Reads a note.
    ///
    /// # Errors
    /// `Invalid` when it is not one of the documented notes.
    pub fn parse(text: &[u8]) -> Result<Self> {
        read(text, "a note `view`, `resize`, `shown` or `still`")
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8], what: &str) -> Result<T> {
    if text.len() > MAX_NOTE_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_NOTE_BYTES} bytes, found {}",
            text.len()
        )));
    }
    serde_json::from_slice(text).map_err(|e| Error::invalid(format!("expected {what} in JSON: {e}")))
}

/// One participant, as all others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParticipantInfo {
    /// Its number in this session, never used twice.
    pub id: ParticipantId,
    /// Name of the participant.
    pub name: String,
    /// Role of the participant.
    pub role: Role,
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something fell back.
    Warning,
    /// Something was lost.
    Error,
}

/// How a picture is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureCodec {
    /// Lossy, quick.
    Jpeg,
    /// Lossless.
    Png,
}

/// Reason why the wanted level is not finer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FidelityLimit {
    /// Nothing: it is the finest there is.
    Finest,
    /// The screen: a finer one would not be seen.
    Screen,
    /// The memory budget.
    Memory,
}

/// Progress of a picture toward its final quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FidelityState {
    /// Every wanted block is there.
    Complete,
    /// Blocks are on their way.
    Loading,
    /// The view is changing; sharpness comes when it rests.
    Moving,
    /// Something that is wanted cannot be had.
    Failed,
}

/// The facts of the truth badge: what is shown, what is missing, why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityBadge {
    /// Finest level that covers everything in the picture; coarser than wanted while blocks are missing, `None`
    /// while no level covers everything.
    pub level_shown: Option<u8>,
    /// The level that this picture is to have.
    pub level_wanted: u8,
    /// How the values of the level shown came to be.
    pub origin: LevelOrigin,
    /// Why it is not finer.
    pub limit: FidelityLimit,
    /// Wanted blocks that are there.
    pub blocks_present: u64,
    /// Wanted blocks.
    pub blocks_total: u64,
    /// Progress of the picture.
    pub state: FidelityState,
    /// Lossless, full quality, not enlarged, and every wanted block present at the wanted level.
    pub exact: bool,
    /// Blocks of coarser levels made so far and in all, while some are being made.
    pub levels_made: Option<[u32; 2]>,
    /// One sentence for people: what is missing, why, and whether waiting will help.
    pub text: String,
}

/// The facts that travel beside an encoded picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameInfo {
    /// Counts up for each participant.
    pub id: u64,
    /// The view it shows.
    pub seq: u64,
    /// Pixels across, of the picture as encoded: smaller than the window while moving.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// How it is encoded.
    pub codec: PictureCodec,
    /// Fidelity badge: what the picture shows and what is missing.
    #[serde(rename = "truth")]
    pub fidelity: FidelityBadge,
}

/// An array as it is drawn, where that is on other axes than those of the data: uneven axes and curvilinear grids are drawn on
/// even ones. Indices and positions in a view are those of these axes. An array in its colors is there beside those that the
/// data have, with a meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawnArray {
    /// Its name.
    pub name: String,
    /// Its axes, in the order of the data's.
    pub axes: Vec<Axis>,
    /// Its levels, as many as the data have.
    pub levels: Vec<Level>,
    /// Units of world space; empty if unknown.
    pub world_units: String,
    /// Things a person should know.
    pub notes: Vec<String>,
    /// Meaning of its values; only for an array that the data do not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// Type of its elements; only for an array that the data do not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
}

/// Message from the viewing node to a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Item {
    /// You take part.
    Joined {
        /// Your number.
        you: ParticipantId,
        /// Your role.
        role: Role,
        /// Name of the data set.
        dataset: String,
        /// View that you see first.
        view: View,
    },
    /// List of participants, sent after it changed.
    Participants {
        /// Everybody, in order of arrival.
        list: Vec<ParticipantInfo>,
    },
    /// Your view was changed by somebody else or by the node.
    View {
        /// Its number; count on from here.
        seq: u64,
        /// All of it.
        view: View,
    },
    /// A picture; its bytes travel as bulk.
    Frame(FrameInfo),
    /// The facts changed without a new picture.
    #[serde(rename = "truth")]
    Fidelity {
        /// Fidelity badge of the picture that is shown.
        #[serde(rename = "truth")]
        fidelity: FidelityBadge,
    },
    /// Statistics of the values shown, sent when they change. The values are those of this array, time and place along other axes.
    Values {
        /// Name of the array.
        array: String,
        /// Index on its time axis.
        time: u64,
        /// Index on axes that are neither space nor time.
        at: std::collections::BTreeMap<String, u64>,
        /// The statistics.
        values: ValueSummary,
    },
    /// The data are not what they were when they were described: describe them again.
    Changed,
    /// The arrays that are drawn on other axes than those in the description, as JSON in bulk: a list of [`DrawnArray`].
    Drawn,
    /// Something to tell a person.
    Message {
        /// How much it matters.
        severity: Severity,
        /// One sentence.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn note(value: &Value) -> ParticipantNote {
        let note = ParticipantNote::parse(value.to_string().as_bytes()).unwrap();
        assert_eq!(&serde_json::to_value(&note).unwrap(), value);
        note
    }

    #[test]
    fn notes_have_the_documented_shapes() {
        let view = note(&json!({"kind": "view", "seq": 4, "view": {"time": 2}, "moving": true}));
        let ParticipantNote::View(change) = view else { panic!("{view:?}") };
        assert_eq!((change.seq, change.moving, change.view.len()), (4, true, 1));
        assert_eq!(
            note(&json!({"kind": "resize", "width": 10, "height": 20})),
            ParticipantNote::Resize { width: 10, height: 20 }
        );
        assert_eq!(note(&json!({"kind": "shown", "frame": 7})), ParticipantNote::Shown { frame: 7 });
        assert_eq!(note(&json!({"kind": "still"})), ParticipantNote::Still);
    }

    #[test]
    fn notes_may_carry_more_than_is_known_and_are_refused_when_wrong() {
        let more = json!({"kind": "shown", "frame": 7, "latency_ms": 3});
        assert_eq!(
            ParticipantNote::parse(more.to_string().as_bytes()).unwrap(),
            ParticipantNote::Shown { frame: 7 }
        );
        for bad in ["", "{}", "null", r#"{"kind":"dance"}"#, r#"{"kind":"shown","frame":-1}"#] {
            let error = ParticipantNote::parse(bad.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("expected a note"), "{error}");
        }
        assert!(ParticipantNote::parse(&vec![b' '; MAX_NOTE_BYTES + 1]).is_err());
    }

    #[test]
    fn join_has_the_documented_shape() {
        let text = br#"{"session": "main", "name": "Ada", "width": 1024, "height": 800}"#;
        let join = JoinParams::parse(text).unwrap();
        assert_eq!((join.name.as_str(), join.size()), ("Ada", PictureSize::new(1024, 800)));
        assert_eq!(PictureSize::new(0, u32::MAX).width(), MIN_PICTURE_SIDE);
        assert_eq!(PictureSize::new(0, u32::MAX).height(), MAX_PICTURE_SIDE);
        let huge = PictureSize::new(u32::MAX, u32::MAX);
        assert_eq!(huge.width(), huge.height());
        assert!(huge.width() * huge.height() <= MAX_PICTURE_PIXELS && huge.width() > 2800);
        assert!(
            !huge.is_whole() && PictureSize::new(1024, 800).is_whole() && PictureSize::new(4, 4).is_whole()
        );
        assert!(JoinParams::parse(br#"{"name": "Ada"}"#).is_err());
    }

    fn fidelity() -> FidelityBadge {
        FidelityBadge {
            level_shown: Some(2),
            level_wanted: 0,
            origin: LevelOrigin::Sampled,
            limit: FidelityLimit::Screen,
            blocks_present: 3,
            blocks_total: 9,
            state: FidelityState::Loading,
            exact: false,
            levels_made: Some([1, 4]),
            text: "loading".into(),
        }
    }

    #[test]
    fn items_have_the_documented_shapes() {
        let facts = json!({"level_shown": 2, "level_wanted": 0, "origin": "sampled", "limit": "screen",
            "blocks_present": 3, "blocks_total": 9, "state": "loading", "exact": false, "levels_made": [1, 4],
            "text": "loading"});
        let frame =
            FrameInfo { id: 1, seq: 2, width: 3, height: 4, codec: PictureCodec::Jpeg, fidelity: fidelity() };
        let person = ParticipantInfo { id: ParticipantId(1), name: "Ada".into(), role: Role::Own };
        let view = View::default();
        let view_json = serde_json::to_value(&view).unwrap();
        for (item, shape) in [
            (
                Item::Joined {
                    you: ParticipantId(1),
                    role: Role::Steer,
                    dataset: "d".into(),
                    view: view.clone(),
                },
                json!({"kind": "joined", "you": 1, "role": "steer", "dataset": "d", "view": view_json}),
            ),
            (
                Item::Participants { list: vec![person] },
                json!({"kind": "participants", "list": [{"id": 1, "name": "Ada", "role": "own"}]}),
            ),
            (Item::View { seq: 5, view }, json!({"kind": "view", "seq": 5, "view": view_json})),
            (
                Item::Frame(frame),
                json!({"kind": "frame", "id": 1, "seq": 2, "width": 3, "height": 4, "codec": "jpeg", "truth": facts}),
            ),
            (Item::Fidelity { fidelity: fidelity() }, json!({"kind": "truth", "truth": facts})),
            (
                Item::Message { severity: Severity::Warning, text: "x".into() },
                json!({"kind": "message", "severity": "warning", "text": "x"}),
            ),
        ] {
            assert_eq!(serde_json::to_value(&item).unwrap(), shape);
            assert_eq!(serde_json::from_value::<Item>(shape).unwrap(), item);
        }
    }
}
