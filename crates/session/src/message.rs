//! Messages between participants and the viewing node: the JSON of `join`, its items and its notes.
//!
//! Data types only, bounded and checked; their effects are decided in [`crate::Room`] and in the frame loop.

use array::{Axis, DType, Error, Level, LevelOrigin, Meaning, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use view::View;

use crate::together::edit::SharedEdit;
use crate::together::pointer::{PointerInfo, PointerPlace};
use crate::{ParticipantId, Role, ValueSummary};

/// Largest note or join parameters, bytes: the wire's limit for both.
pub const MAX_NOTE_BYTES: usize = 1 << 20;
/// Longest name of a participant or session, bytes; longer ones are truncated.
pub const MAX_NAME_BYTES: usize = 64;
/// Smallest side of a picture, pixels; smaller requests are raised to it.
pub const MIN_PICTURE_SIDE: u32 = 16;
/// Largest side of a picture, pixels; larger requests are lowered to it.
pub const MAX_PICTURE_SIDE: u32 = 4096;
/// Most pixels of a picture: a little more than a 4K screen. While it is drawn a pixel takes 32 bytes, and as
/// PNG the picture still fits an item.
pub const MAX_PICTURE_PIXELS: u32 = 8 << 20;

/// Size of a picture, pixels; both sides are always within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureSize {
    width: u32,
    height: u32,
    is_whole: bool,
}

impl PictureSize {
    /// Returns the nearest valid size; with too many pixels both sides shrink alike.
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

    /// Returns false if more pixels were requested: viewers enlarge the picture.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.is_whole
    }

    /// Returns the pixels across.
    #[must_use]
    pub fn width(self) -> u32 {
        self.width
    }

    /// Returns the pixels down.
    #[must_use]
    pub fn height(self) -> u32 {
        self.height
    }
}

/// Parameters of the operation `join`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinParams {
    /// Session of the node; empty means the main one.
    #[serde(default)]
    pub session: String,
    /// Name of this participant, as shown to the others.
    #[serde(default)]
    pub name: String,
    /// Pixels across that the participant can show.
    pub width: u32,
    /// Pixels down that the participant can show.
    pub height: u32,
    /// Secret of an earlier `joined`, to be the same participant again; empty for a new one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resume: String,
}

impl JoinParams {
    /// Parses the parameters.
    ///
    /// # Errors
    /// `Invalid` if they are not the documented JSON.
    pub fn parse(text: &[u8]) -> Result<Self> {
        read(text, "parameters of `join`")
    }

    /// Returns the requested picture size, within the limits.
    #[must_use]
    pub fn size(&self) -> PictureSize {
        PictureSize::new(self.width, self.height)
    }
}

/// Change of a participant's own view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewChange {
    /// Number that rises with each change; a change that is not newer than the last one is dropped.
    pub seq: u64,
    /// Fields that changed.
    pub view: Map<String, Value>,
    /// More changes follow soon: speed matters more than sharpness.
    #[serde(default)]
    pub moving: bool,
    /// Change by the page itself, such as the view of the link that it was opened with: it cannot be undone, and does
    /// not end following.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
}

/// Message from a participant to a running `join`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ParticipantNote {
    /// The view changed.
    View(ViewChange),
    /// The window changed.
    Resize {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// The participant shows this frame, and has shown all before it.
    Shown {
        /// Number of the frame.
        frame: u64,
    },
    /// Request for an exact picture of the current view.
    Still,
    /// This participant is a further picture of a page whose first picture is another participant.
    Pane,
    /// New name of the participant.
    Rename {
        /// The name.
        name: String,
    },
    /// The participant follows another one, or nobody.
    Follow {
        /// Participant to follow; `None` for nobody.
        leader: Option<ParticipantId>,
    },
    /// A participant presents to all, or nobody does.
    Present {
        /// Participant who presents from now on; `None` ends the presentation.
        presenter: Option<ParticipantId>,
    },
    /// Change of a role; for owners.
    Role {
        /// Participant whose role changes.
        who: ParticipantId,
        /// New role.
        role: Role,
    },
    /// Removal of a participant from the session; for owners.
    Remove {
        /// Participant who is removed.
        who: ParticipantId,
    },
    /// The pointer moved.
    Pointer {
        /// Place that it points to; `None` hides it.
        at: Option<PointerPlace>,
        /// The participant wants everybody to look there.
        #[serde(default)]
        laser: bool,
    },
    /// Edit of the shared content.
    Edit {
        /// Number that rises with each edit; one that is not newer than the last one is dropped.
        seq: u64,
        /// The edit.
        edit: SharedEdit,
    },
    /// Request for the whole shared content, by a participant who missed a part of it.
    Resend,
    /// Undoes the last step of the own view.
    Undo,
    /// Repeats the step that was undone last.
    Redo,
}

impl ParticipantNote {
    /// Parses a note.
    ///
    /// # Errors
    /// `Invalid` if it is not one of the documented notes.
    pub fn parse(text: &[u8]) -> Result<Self> {
        read(text, "a note such as `view`, `resize`, `shown`, `still`, `pane` or `edit`")
    }
}

/// Parses JSON of bounded size; `what` names it in errors.
fn read<'a, T: Deserialize<'a>>(text: &'a [u8], what: &str) -> Result<T> {
    if text.len() > MAX_NOTE_BYTES {
        return Err(Error::too_large(format!(
            "expected at most {MAX_NOTE_BYTES} bytes, found {}",
            text.len()
        )));
    }
    serde_json::from_slice(text).map_err(|e| Error::invalid(format!("expected {what} in JSON: {e}")))
}

/// Participant, as described to all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParticipantInfo {
    /// Number in this session, never reused.
    pub id: ParticipantId,
    /// Name of the participant.
    pub name: String,
    /// Role of the participant.
    pub role: Role,
    /// Color of the participant, `#rrggbb`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub color: String,
    /// Participant whose view they follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<ParticipantId>,
    /// The participant presents to all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub presents: bool,
    /// The connection broke; the participant may come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
}

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information.
    Info,
    /// A fallback was used.
    Warning,
    /// Something was lost.
    Error,
}

/// Encoding of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureCodec {
    /// JPEG: lossy, fast.
    Jpeg,
    /// PNG: lossless.
    Png,
}

/// Reason why the wanted level is not finer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FidelityLimit {
    /// No limit: it is the finest level.
    Finest,
    /// Screen: a finer level would not be visible.
    Screen,
    /// Memory budget.
    Memory,
}

/// Progress of a picture toward its final quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FidelityState {
    /// Every wanted block is loaded.
    Complete,
    /// Blocks are being loaded.
    Loading,
    /// The view is changing; the picture becomes sharp when it rests.
    Moving,
    /// Some wanted blocks cannot be loaded.
    Failed,
}

/// Fidelity badge: what is shown, what is missing, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FidelityBadge {
    /// Finest level that covers everything in the picture; coarser than wanted while blocks are missing, `None`
    /// while no level covers everything.
    pub level_shown: Option<u8>,
    /// Level that this picture should have.
    pub level_wanted: u8,
    /// Origin of the values of the level shown.
    pub origin: LevelOrigin,
    /// Reason why the wanted level is not finer.
    pub limit: FidelityLimit,
    /// Number of wanted blocks that are loaded.
    pub blocks_present: u64,
    /// Number of wanted blocks.
    pub blocks_total: u64,
    /// Progress of the picture.
    pub state: FidelityState,
    /// Lossless, full quality, not enlarged, and every wanted block present at the wanted level.
    pub exact: bool,
    /// Blocks of coarser levels generated so far and in total, while some are being generated.
    pub levels_made: Option<[u32; 2]>,
    /// True if values are drawn on an even grid that the file does not have, each from the cell at its center.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resampled: bool,
    /// One sentence for users: what is missing, why, and whether waiting will help.
    pub text: String,
}

/// Metadata of an encoded picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameInfo {
    /// Number of the frame, counted per participant.
    pub id: u64,
    /// Number of the view it shows.
    pub seq: u64,
    /// Pixels across of the encoded picture: fewer than those of the window while the view moves.
    pub width: u32,
    /// Pixels down of the encoded picture.
    pub height: u32,
    /// Encoding of the picture.
    pub codec: PictureCodec,
    /// Fidelity badge: what the picture shows and what is missing.
    #[serde(rename = "truth")]
    pub fidelity: FidelityBadge,
}

/// Array as it is drawn, if its axes differ from those of the data: uneven axes and curvilinear grids are
/// drawn on even ones. Indices and positions in a view refer to these axes. A color image is an additional
/// array, with a meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawnArray {
    /// Name of the array.
    pub name: String,
    /// Axes, in the order of the data's.
    pub axes: Vec<Axis>,
    /// Levels, as many as the data have.
    pub levels: Vec<Level>,
    /// Units of world space; empty if unknown.
    pub world_units: String,
    /// Notes for users.
    pub notes: Vec<String>,
    /// Meaning of its values; only for an additional array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// Type of its elements; only for an additional array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Units of its values; only for an additional array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<String>,
    /// Arrays that are the components along x, y and z of the vectors whose lengths this array has; of a single one with
    /// an axis of components its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Name of that axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_axis: Option<String>,
}

/// Message from the viewing node to a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Item {
    /// Confirmation of `join`.
    Joined {
        /// Number of the new participant.
        you: ParticipantId,
        /// Role of the new participant.
        role: Role,
        /// Name of the data set.
        dataset: String,
        /// View that is shown first.
        view: View,
        /// Number of the view; above 0 for a participant who was here before.
        #[serde(default, skip_serializing_if = "is_zero")]
        seq: u64,
        /// Secret by which the participant can come back within a minute; empty if that is impossible.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        resume: String,
        /// Number of the newest edit that the node has from the participant.
        #[serde(default, skip_serializing_if = "is_zero")]
        edits: u64,
    },
    /// List of participants, sent after it changed.
    Participants {
        /// All participants, in order of arrival.
        list: Vec<ParticipantInfo>,
    },
    /// The participant's view was changed by somebody else or by the node.
    View {
        /// Number of the view; the next change must have a higher one.
        seq: u64,
        /// Complete view.
        view: View,
    },
    /// Picture; its bytes are sent as bulk.
    Frame(FrameInfo),
    /// Fidelity badge that changed without a new picture.
    #[serde(rename = "truth")]
    Fidelity {
        /// Fidelity badge of the picture that is shown.
        #[serde(rename = "truth")]
        fidelity: FidelityBadge,
    },
    /// Statistics of the values shown, sent when they change, with the array and indices that they belong to.
    Values {
        /// Name of the array.
        array: String,
        /// Index on its time axis.
        time: u64,
        /// Index on axes that are neither space nor time.
        at: std::collections::BTreeMap<String, u64>,
        /// Statistics.
        values: ValueSummary,
    },
    /// The data have changed since they were described: describe them again.
    Changed,
    /// Arrays that are drawn on other axes than those in the description, as JSON in bulk: a list of
    /// [`DrawnArray`].
    Drawn,
    /// Update of the shared content; the bulk is a [`SharedUpdate`](crate::SharedUpdate) as JSON.
    Shared {
        /// Number of the newest change.
        rev: u64,
        /// Number of the newest edit of this participant that was accepted or refused.
        heard: u64,
    },
    /// All pointers of others, sent after one changed.
    Pointers {
        /// The pointers.
        list: Vec<PointerInfo>,
    },
    /// Participant that the receiver follows, sent after it changed.
    Following {
        /// Participant whose view is shown; `None` for the own view.
        leader: Option<ParticipantId>,
        /// Sentence for the user about why following ended; empty if there is none.
        #[serde(default)]
        text: String,
    },
    /// Numbers of steps of the own view that can be undone and redone.
    History {
        /// Steps that can be undone.
        undo: usize,
        /// Steps that can be redone.
        redo: usize,
    },
    /// The receiver was removed from the session; the last item of their `join`, which then fails as denied.
    Removed {
        /// Name of the owner who removed them.
        by: String,
    },
    /// Message for the user.
    Message {
        /// Severity of the message.
        severity: Severity,
        /// One sentence.
        text: String,
    },
}

/// Returns true for 0, which is left out of messages.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "signature of `skip_serializing_if`")]
fn is_zero(number: &u64) -> bool {
    *number == 0
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
        assert_eq!(
            note(&json!({"kind": "follow", "leader": null})),
            ParticipantNote::Follow { leader: None }
        );
        note(&json!({"kind": "pointer", "at": {"world": [1.0, 2.0, 3.0]}, "laser": true}));
        note(&json!({"kind": "role", "who": 3, "role": "watch"}));
        assert_eq!(
            note(&json!({"kind": "remove", "who": 3})),
            ParticipantNote::Remove { who: ParticipantId(3) }
        );
        note(&json!({"kind": "edit", "seq": 2, "edit": {"op": "say", "text": "hello"}}));
    }

    #[test]
    fn unknown_fields_of_notes_are_ignored_and_invalid_notes_are_refused() {
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
            resampled: false,
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
        let person = ParticipantInfo {
            id: ParticipantId(1),
            name: "Ada".into(),
            role: Role::Own,
            color: "#4cc9f0".into(),
            follows: None,
            presents: false,
            away: false,
        };
        let view = View::default();
        let view_json = serde_json::to_value(&view).unwrap();
        for (item, shape) in [
            (
                Item::Joined {
                    you: ParticipantId(1),
                    role: Role::Steer,
                    dataset: "d".into(),
                    view: view.clone(),
                    seq: 0,
                    resume: String::new(),
                    edits: 0,
                },
                json!({"kind": "joined", "you": 1, "role": "steer", "dataset": "d", "view": view_json}),
            ),
            (
                Item::Participants { list: vec![person] },
                json!({"kind": "participants", "list": [{"id": 1, "name": "Ada", "role": "own", "color": "#4cc9f0"}]}),
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
            (Item::Removed { by: "Ada".into() }, json!({"kind": "removed", "by": "Ada"})),
        ] {
            assert_eq!(serde_json::to_value(&item).unwrap(), shape);
            assert_eq!(serde_json::from_value::<Item>(shape).unwrap(), item);
        }
    }
}
