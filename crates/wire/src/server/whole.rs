//! Small whole answers: they wait here to be sent together, the most urgent first, then the oldest.
//!
//! Adding one and taking the next cost the same however many wait. A cancelled answer leaves an empty place,
//! and places that are mostly empty are compacted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use array::Priority;

use crate::frames::batch::SmallAnswer;

/// Empty places that may remain before compaction.
const MAX_EMPTY: usize = 64;

/// Sort key, smaller is sooner: priority, then the age, which is unique.
pub(crate) type AnswerRank = (Reverse<Priority>, u64);

#[derive(Debug, Default)]
pub(crate) struct WholeAnswers(BTreeMap<Reverse<Priority>, AnswersByAge>);

/// Answers of one priority by age. The first place is never empty.
#[derive(Debug, Default)]
struct AnswersByAge {
    places: VecDeque<(u64, Option<SmallAnswer>)>,
    empty: usize,
}

impl WholeAnswers {
    /// Adds an answer that is younger than all before.
    pub(crate) fn push(&mut self, priority: Priority, age: u64, answer: SmallAnswer) {
        self.0.entry(Reverse(priority)).or_default().places.push_back((age, Some(answer)));
    }

    /// Returns the next answer, with its rank.
    pub(crate) fn first(&self) -> Option<(AnswerRank, &SmallAnswer)> {
        let (&priority, queue) = self.0.first_key_value()?;
        let (age, answer) = queue.places.front()?;
        Some(((priority, *age), answer.as_ref()?))
    }

    /// Takes the next answer.
    pub(crate) fn pop(&mut self) -> Option<SmallAnswer> {
        let mut queue = self.0.first_entry()?;
        let (_, answer) = queue.get_mut().places.pop_front()?;
        queue.get_mut().close_up();
        if queue.get().places.is_empty() {
            queue.remove();
        }
        answer
    }

    /// Removes an answer, wherever it waits; `None` when it does not.
    pub(crate) fn withdraw(&mut self, priority: Priority, age: u64) -> Option<SmallAnswer> {
        let queue = self.0.get_mut(&Reverse(priority))?;
        let place = queue.places.binary_search_by_key(&age, |(age, _)| *age).ok()?;
        let answer = queue.places[place].1.take()?;
        queue.empty += 1;
        queue.close_up();
        if queue.places.is_empty() {
            self.0.remove(&Reverse(priority));
        }
        Some(answer)
    }
}

impl AnswersByAge {
    fn close_up(&mut self) {
        while let Some((_, None)) = self.places.front() {
            self.places.pop_front();
            self.empty -= 1;
        }
        if self.empty > MAX_EMPTY && self.empty > self.places.len() / 2 {
            self.places.retain(|(_, answer)| answer.is_some());
            self.empty = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpId;

    fn answer(op: u32) -> SmallAnswer {
        SmallAnswer { op: OpId(op), item: None, done: true }
    }

    fn all(answers: &mut WholeAnswers) -> Vec<u32> {
        std::iter::from_fn(|| answers.pop()).map(|answer| answer.op.0).collect()
    }

    #[test]
    fn the_most_urgent_leave_first_then_the_oldest() {
        let mut answers = WholeAnswers::default();
        for (age, priority) in [Priority::NORMAL, Priority::URGENT, Priority::NORMAL].into_iter().enumerate()
        {
            answers.push(priority, age as u64, answer(u32::try_from(age).unwrap()));
        }
        assert_eq!(answers.first().unwrap().0, (Reverse(Priority::URGENT), 1));
        assert_eq!(all(&mut answers), [1, 0, 2]);
        assert!(answers.first().is_none() && answers.0.is_empty());
    }

    #[test]
    fn those_withdrawn_leave_no_trace_and_few_places() {
        let mut answers = WholeAnswers::default();
        for n in 0..10_000 {
            answers.push(Priority::NORMAL, u64::from(n), answer(n));
            // The first one stays, and one in a hundred.
            if n % 100 != 0 {
                assert_eq!(answers.withdraw(Priority::NORMAL, u64::from(n)), Some(answer(n)));
                assert_eq!(answers.withdraw(Priority::NORMAL, u64::from(n)), None);
            }
            let places: usize = answers.0.values().map(|queue| queue.places.len()).sum();
            assert!(places <= 2 * 100 + 2 * MAX_EMPTY, "{places} places");
        }
        assert_eq!(answers.withdraw(Priority::URGENT, 0), None);
        assert_eq!(answers.withdraw(Priority::NORMAL, 0), Some(answer(0)));
        assert_eq!(all(&mut answers), (1..100).map(|n| n * 100).collect::<Vec<_>>());
    }
}
