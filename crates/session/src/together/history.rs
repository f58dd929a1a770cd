//! History of one participant's view, for undo and redo.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use view::View;

/// Most steps that can be undone.
const MAX_UNDO_STEPS: usize = 100;
/// Most bytes of the steps of one participant, as JSON: a whole view has at most 64 KiB.
const MAX_UNDO_BYTES: usize = 512 << 10;

/// Fields of a view before a step.
struct ViewStep {
    fields: Map<String, Value>,
    bytes: usize,
}

impl ViewStep {
    fn new(fields: Map<String, Value>) -> Self {
        let bytes = serde_json::to_string(&fields).map_or(MAX_UNDO_BYTES, |text| text.len());
        Self { fields, bytes }
    }
}

/// Direction in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryDirection {
    Undo,
    Redo,
}

/// Steps of one participant's view. All changes of one movement, such as a drag, are one step.
#[derive(Default)]
pub(crate) struct ViewHistory {
    undo: VecDeque<ViewStep>,
    redo: Vec<ViewStep>,
    is_moving: bool,
}

impl ViewHistory {
    /// Records a change; `moving` if more changes of the same movement follow.
    pub(crate) fn changed(&mut self, before: &View, after: &View, moving: bool) {
        let continues = std::mem::replace(&mut self.is_moving, moving);
        self.push(difference(before, after), continues);
    }

    /// Records a step after which the whole view may be another one.
    pub(crate) fn replaced(&mut self, before: &View) {
        self.is_moving = false;
        self.push(fields_of(before), false);
    }

    fn push(&mut self, fields: Map<String, Value>, continues: bool) {
        if fields.is_empty() {
            return;
        }
        self.redo.clear();
        let step = match self.undo.pop_back() {
            Some(last) if continues => {
                let mut merged = fields;
                merged.extend(last.fields);
                ViewStep::new(merged)
            }
            last => {
                self.undo.extend(last);
                ViewStep::new(fields)
            }
        };
        self.undo.push_back(step);
        let mut bytes: usize = self.undo.iter().map(|step| step.bytes).sum();
        while self.undo.len() > MAX_UNDO_STEPS || bytes > MAX_UNDO_BYTES {
            let Some(oldest) = self.undo.pop_front() else { break };
            bytes -= oldest.bytes;
        }
    }

    /// Takes the fields of the next step in a direction; [`moved`](Self::moved) completes it.
    pub(crate) fn take(&mut self, direction: HistoryDirection) -> Option<Map<String, Value>> {
        self.is_moving = false;
        let step = match direction {
            HistoryDirection::Undo => self.undo.pop_back(),
            HistoryDirection::Redo => self.redo.pop(),
        };
        step.map(|step| step.fields)
    }

    /// Records the opposite of the step that was taken.
    pub(crate) fn moved(&mut self, direction: HistoryDirection, before: &View, after: &View) {
        let fields = difference(before, after);
        if fields.is_empty() {
            return;
        }
        match direction {
            HistoryDirection::Undo => {
                self.redo.push(ViewStep::new(fields));
                let mut bytes: usize = self.redo.iter().map(|step| step.bytes).sum();
                while bytes > MAX_UNDO_BYTES && !self.redo.is_empty() {
                    bytes -= self.redo.remove(0).bytes;
                }
            }
            HistoryDirection::Redo => self.undo.push_back(ViewStep::new(fields)),
        }
    }

    /// Returns the numbers of steps that can be undone and redone.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.undo.len(), self.redo.len())
    }
}

fn fields_of(view: &View) -> Map<String, Value> {
    match serde_json::to_value(view) {
        Ok(Value::Object(fields)) => fields,
        // A view is always a JSON object.
        _ => Map::new(),
    }
}

/// Returns the fields of `before` that are different in `after`; null for those that only `after` has.
fn difference(before: &View, after: &View) -> Map<String, Value> {
    let (before, after) = (fields_of(before), fields_of(after));
    let added =
        after.keys().filter(|name| !before.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let mut fields: Map<String, Value> = added.collect();
    fields.extend(before.into_iter().filter(|(name, value)| after.get(name) != Some(value)));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64) -> View {
        View { time, ..View::default() }
    }

    #[test]
    fn the_changes_of_a_drag_are_one_step() {
        let mut history = ViewHistory::default();
        history.changed(&at(0), &at(1), false);
        for time in 1..50 {
            history.changed(&at(time), &at(time + 1), true);
        }
        history.changed(&at(50), &at(50), false);
        history.changed(&at(50), &at(51), false);
        assert_eq!(history.counts(), (3, 0));
        let time = |fields: Option<Map<String, Value>>| fields.map(|fields| fields["time"].as_u64().unwrap());
        assert_eq!(time(history.take(HistoryDirection::Undo)), Some(50));
        history.moved(HistoryDirection::Undo, &at(51), &at(50));
        assert_eq!(time(history.take(HistoryDirection::Undo)), Some(1));
        history.moved(HistoryDirection::Undo, &at(50), &at(1));
        assert_eq!(time(history.take(HistoryDirection::Redo)), Some(50));
        history.moved(HistoryDirection::Redo, &at(1), &at(50));
        assert_eq!(history.counts(), (2, 1));
        history.changed(&at(50), &at(7), false);
        assert_eq!(history.counts(), (3, 0), "a new step ends redo");
    }

    #[test]
    fn the_history_is_bounded_in_steps_and_bytes() {
        let mut history = ViewHistory::default();
        for time in 0..1000 {
            history.changed(&at(time), &at(time + 1), false);
        }
        assert_eq!(history.counts().0, MAX_UNDO_STEPS);
        let large = |n: usize| View { array: "a".repeat(4000) + &n.to_string(), ..View::default() };
        for n in 0..1000 {
            history.changed(&large(n), &large(n + 1), false);
        }
        assert!(history.undo.iter().map(|step| step.bytes).sum::<usize>() <= MAX_UNDO_BYTES);
        for _ in 0..1000 {
            history.replaced(&large(0));
        }
        assert!(history.undo.iter().map(|step| step.bytes).sum::<usize>() <= MAX_UNDO_BYTES);
    }
}
