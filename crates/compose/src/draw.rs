//! Drawing of one picture by all ranks: each casts its share of the volume and composites its part of the
//! image.
//!
//! Casting and sending overlap: a rank first casts the parts of the image that others need, sends each at
//! once, and casts its own last.
//!
//! A rank that fails or is cancelled sends empty parts but continues the exchange: no rank waits for one that
//! has left. Errors are reported to rank 0 at the end.

use array::{BlockKey, Error, ErrorKind, Result};
use render::{
    Cancel, Image, ImagePart, ImageSize, PartialImage, Rect, SampleTally, Scene, Snapshot, cast_part,
};

use crate::piece::{HEAD_BYTES, cut, from_message, stack, to_message};
use crate::{Communicator, KdTree, Method, Schedule, Viewpoint, broadcast, failure, reduce};

/// Communication of one rank for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Rounds in which parts were exchanged.
    pub rounds: usize,
    /// Messages sent.
    pub messages: usize,
    /// Bytes of pixels in these messages.
    pub pixel_bytes: usize,
}

/// Result of a picture at one rank.
#[derive(Clone, Debug)]
pub struct Composed {
    /// Rectangle of the image that this rank holds. Pixels in no rank's rectangle are transparent.
    pub region: Rect,
    /// Finished pixels; if the piece is smaller than the region, the rest is transparent.
    pub piece: PartialImage,
    /// Sample counts, from which the fidelity follows: at rank 0 of the whole picture, at the others of this
    /// rank.
    pub tally: SampleTally,
    /// Work of blocks at this rank, in samples drawn.
    pub work: Vec<(BlockKey, f64)>,
    /// Messages that this rank sent.
    pub traffic: Traffic,
}

impl Composed {
    /// Returns the image of the region.
    #[must_use]
    pub fn image(&self) -> Image {
        let Rect { width, height, .. } = self.region;
        let whole = stack(vec![PartialImage::transparent(self.region, false), self.piece.clone()]);
        Image { size: ImageSize { width, height }, rgba: whole.rgba }
    }
}

/// Draws one picture with all ranks, which make the same call with the same scene, tree and method, each with
/// the `blocks` that its share [needs](render::SubVolume::needs). Blocks the thread.
///
/// # Errors
/// Those of [`cast_part`] and of the communicator; at rank 0 also the most severe error of the others.
pub fn draw(
    ranks: &dyn Communicator,
    scene: &Scene,
    tree: &KdTree,
    method: Method,
    blocks: &Snapshot,
    cancel: &Cancel,
) -> Result<Composed> {
    draw_by(ranks, scene, tree, &Schedule::new(method, ranks.size())?, blocks, cancel)
}

/// Draws a picture as [`draw`] does, with a given schedule. With one [by rows](Schedule::by_rows) the ranks'
/// regions cover the whole image, also where nothing is visible.
///
/// # Errors
/// Those of [`draw`].
pub fn draw_by(
    ranks: &dyn Communicator,
    scene: &Scene,
    tree: &KdTree,
    schedule: &Schedule,
    blocks: &Snapshot,
    cancel: &Cancel,
) -> Result<Composed> {
    scene.check()?;
    scene.size.check()?;
    let order = tree.order(&Viewpoint::of(scene));
    let PictureBounds { finest, covered } = agree_on_bounds(ranks, scene, tree, blocks)?;
    let share = tree.share(ranks.rank());
    let footprint = share.footprint(scene)?.intersection(&covered);
    let (mut outcome, mut work) = (PictureOutcome::default(), Vec::new());
    let mut cast = |rect: Rect| {
        let rect = rect.intersection(&footprint);
        if rect.is_empty() || outcome.failed.is_some() {
            return Ok(PartialImage::default());
        }
        match cast_part(scene, &ImagePart { sub_volume: share, rect, finest }, blocks, cancel) {
            Ok(drawn) => {
                outcome.tally.add(&drawn.tally);
                work.extend(drawn.work);
                Ok(drawn.image)
            }
            Err(error) => {
                outcome.failed = Some(error);
                Ok(PartialImage::default())
            }
        }
    };
    let all = if schedule.is_by_rows() { Rect::whole(scene.size) } else { covered };
    let (region, piece, traffic) = compose(ranks, &order, schedule, all, &mut cast)?;
    let total = reduce(ranks, outcome.to_bytes(), |a, b| {
        Ok(PictureOutcome::from_bytes(&a)?.combined(PictureOutcome::from_bytes(&b)?).to_bytes())
    })?;
    let PictureOutcome { tally, failed } =
        if ranks.rank() == 0 { PictureOutcome::from_bytes(&total)? } else { outcome };
    match failed {
        Some(error) => Err(error),
        None => Ok(Composed { region, piece: piece.finished(scene), tally, work, traffic }),
    }
}

/// Outcome of a picture at one rank, or at several.
#[derive(Default)]
struct PictureOutcome {
    tally: SampleTally,
    failed: Option<Error>,
}

impl PictureOutcome {
    /// Combines two outcomes; cancellation is the least severe error.
    fn combined(mut self, other: Self) -> Self {
        self.tally.add(&other.tally);
        let says_more = |error: &Error| error.kind() != ErrorKind::Cancelled;
        let failed = match (self.failed, other.failed) {
            (Some(own), Some(theirs)) if !says_more(&own) && says_more(&theirs) => Some(theirs),
            (own, theirs) => own.or(theirs),
        };
        Self { tally: self.tally, failed }
    }

    /// Serializes the tally, and the code and text of an error, if there is one.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.tally.to_bytes();
        bytes.extend(failure::to_bytes(self.failed.as_ref()));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (tally, rest) = bytes.split_at(bytes.len().min(SampleTally::BYTES));
        Ok(Self { tally: SampleTally::from_bytes(tally)?, failed: failure::from_bytes(rest) })
    }
}

/// Values that all ranks must agree on before they begin.
struct PictureBounds {
    /// See [`ImagePart::finest`].
    finest: Option<u8>,
    /// Part of the image in which anything may be visible.
    covered: Rect,
}

/// Agrees on the finest level and on the covered part of the image, which rank 0 decides, so that rounding on
/// different machines does not matter.
fn agree_on_bounds(
    ranks: &dyn Communicator,
    scene: &Scene,
    tree: &KdTree,
    blocks: &Snapshot,
) -> Result<PictureBounds> {
    let place = |number| scene.view.level_index_of(number).ok().and_then(|rank| u8::try_from(rank).ok());
    let own = blocks.finest_level(scene).and_then(place).unwrap_or(u8::MAX);
    let finest = reduce(ranks, vec![own], |a, b| Ok(a.into_iter().chain(b).min().into_iter().collect()))?;
    let mut message = finest;
    if ranks.rank() == 0 {
        let footprints = (0..tree.ranks()).map(|rank| tree.share(rank).footprint(scene));
        let all = footprints.collect::<Result<Vec<_>>>()?;
        message.extend(all.iter().fold(Rect::default(), |sum, own| sum.union(own)).to_bytes());
    }
    let message = broadcast(ranks, message)?;
    let [finest, covered @ ..]: [u8; 1 + Rect::BYTES] = message.as_slice().try_into().map_err(|_| {
        Error::corrupt(format!("expected 17 bytes before a picture, found {}", message.len()))
    })?;
    Ok(PictureBounds {
        finest: scene.view.levels.get(usize::from(finest)).map(|level| level.number),
        covered: Rect::from_bytes(&covered).intersection(&Rect::whole(scene.size)),
    })
}

/// Composites an image from the parts of all ranks. `order` lists the ranks front to back, `covered` is the
/// part of the image to composite; `cast` draws a rectangle of it, or the nonempty part of it. Returns the
/// part of the image that this rank holds in the end.
///
/// # Errors
/// Those of `cast` and of the communicator; `Corrupt` for an invalid message.
///
/// # Panics
/// If `order` and `schedule` are for another number of ranks.
pub fn compose(
    ranks: &dyn Communicator,
    order: &[usize],
    schedule: &Schedule,
    covered: Rect,
    cast: &mut dyn FnMut(Rect) -> Result<PartialImage>,
) -> Result<(Rect, PartialImage, Traffic)> {
    assert_eq!([order.len(), schedule.ranks()], [ranks.size(); 2], "an order and a schedule for all ranks");
    let place = order.iter().position(|&rank| rank == ranks.rank()).expect("every rank has a place");
    let (mut region, mut held) = (covered, None);
    let mut traffic = Traffic::default();
    for round in schedule.rounds(place) {
        let count = round.group.len();
        let mut part_of = |index: usize| {
            let part = schedule.cut(&region, index, count);
            held.as_ref().map_or_else(|| cast(part), |piece| Ok(cut(piece, &part)))
        };
        // Each rank starts with its successor, so that not all send to the same rank.
        for index in (1..count).map(|i| (round.own + i) % count) {
            let message = to_message(&part_of(index)?);
            traffic.messages += 1;
            traffic.pixel_bytes += message.len() - HEAD_BYTES;
            ranks.send(order[round.group[index]], message)?;
        }
        let mut own = Some(part_of(round.own)?);
        region = schedule.cut(&region, round.own, count);
        let piece = |(index, &place): (usize, &usize)| {
            let mine = if index == round.own { own.take() } else { None };
            mine.map_or_else(|| from_message(&ranks.receive(order[place])?, &region), Ok)
        };
        held = Some(stack(round.group.iter().enumerate().map(piece).collect::<Result<_>>()?));
        traffic.rounds += 1;
    }
    let piece = held.map_or_else(|| cast(region), Ok)?;
    Ok((region, piece, traffic))
}
