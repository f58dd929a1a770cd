//! Division of a volume among ranks: a k-d tree that cuts the volume in two until each rank has a box with
//! about the same work.
//!
//! Planes cut boxes completely, so the boxes have a depth order from any eye: at each plane the side of the
//! eye is in front.

use array::{Error, Result};
use glam::DVec3;
use render::{Scene, SubVolume, WorkPoint};
use view::Projection;

/// Viewpoint in volume space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Viewpoint {
    /// Rays start at this point.
    Eye([f64; 3]),
    /// Rays are parallel to this direction.
    Along([f64; 3]),
}

impl Viewpoint {
    /// Returns the viewpoint of a scene.
    #[must_use]
    pub fn of(scene: &Scene) -> Self {
        let volume_from_world = scene.view.world_from_volume.inverse();
        let (eye, target) = (DVec3::from(scene.camera.eye), DVec3::from(scene.camera.target));
        match scene.camera.projection {
            Projection::Perspective { .. } => {
                Self::Eye(volume_from_world.transform_point3(scene.camera.origin().into()).into())
            }
            Projection::Orthographic { .. } => {
                Self::Along(volume_from_world.transform_vector3(target - eye).into())
            }
        }
    }

    /// Returns true if the lower side of a plane is in front.
    fn sees_lower_first(&self, plane: &CutPlane) -> bool {
        match self {
            Self::Eye(eye) => eye[plane.axis] < plane.at,
            Self::Along(direction) => direction[plane.axis] >= 0.0,
        }
    }
}

/// Plane across an axis (0 x, 1 y, 2 z) of volume space.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CutPlane {
    axis: usize,
    at: f64,
}

/// A k-d tree with a leaf for each rank.
#[derive(Clone, Debug, PartialEq)]
pub struct KdTree {
    ranks: usize,
    /// Planes, each followed by those of its lower side, and then those of its upper side.
    planes: Vec<CutPlane>,
}

/// Ranks `first..end` and the number of the plane that divides them, if any.
#[derive(Clone, Copy)]
struct TreeNode {
    first: usize,
    end: usize,
    plane: usize,
}

impl TreeNode {
    /// Returns the lower and the upper side.
    fn sides(self) -> [Self; 2] {
        let middle = self.first + (self.end - self.first) / 2;
        let lower = Self { end: middle, plane: self.plane + 1, ..self };
        // A side has one plane less than leaves.
        let upper = Self { first: middle, plane: self.plane + (middle - self.first), ..self };
        [lower, upper]
    }

    fn is_leaf(self) -> bool {
        self.end - self.first == 1
    }
}

/// Tolerance of a plane's position, as a share of the work of one rank, within which a position is chosen
/// that needs fewer blocks on both sides.
const TOLERANCE: f64 = 0.04;

impl KdTree {
    /// Most ranks of a tree.
    pub const MAX_RANKS: usize = 1 << 16;

    /// Divides the volume into shares of about equal work.
    ///
    /// # Errors
    /// `Invalid` without a rank, or for more than [`KdTree::MAX_RANKS`].
    pub fn new(scene: &Scene, work: &[WorkPoint], ranks: usize) -> Result<Self> {
        Self::check(ranks)?;
        let mut points = work.to_vec();
        let mut tree = Self { ranks, planes: Vec::with_capacity(ranks - 1) };
        let node = TreeNode { first: 0, end: ranks, plane: 0 };
        tree.cut(scene, node, &volume_box(scene), &mut points);
        Ok(tree)
    }

    fn check(ranks: usize) -> Result<()> {
        if (1..=Self::MAX_RANKS).contains(&ranks) {
            return Ok(());
        }
        Err(Error::invalid(format!("expected 1 to {} ranks, found {ranks}", Self::MAX_RANKS)))
    }

    fn cut(&mut self, scene: &Scene, node: TreeNode, within: &SubVolume, points: &mut [WorkPoint]) {
        if node.is_leaf() {
            return;
        }
        let sides = node.sides();
        let share = (sides[0].end - sides[0].first) as f64 / (node.end - node.first) as f64;
        let axis = longest_axis(within, points);
        points.sort_unstable_by(|a, b| a.at[axis].total_cmp(&b.at[axis]));
        let at = place(scene, axis, within, points, share, node.end - node.first);
        self.planes.push(CutPlane { axis, at });
        let (lower, upper) = points.split_at_mut(points.partition_point(|point| point.at[axis] < at));
        let [low, high] = within.split(axis, at);
        self.cut(scene, sides[0], &low, lower);
        self.cut(scene, sides[1], &high, upper);
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the share that a rank draws.
    ///
    /// # Panics
    /// For a rank that the tree does not have.
    #[must_use]
    pub fn share(&self, rank: usize) -> SubVolume {
        assert!(rank < self.ranks, "expected a rank below {}, found {rank}", self.ranks);
        let mut node = TreeNode { first: 0, end: self.ranks, plane: 0 };
        let mut share = SubVolume::WHOLE;
        while !node.is_leaf() {
            let CutPlane { axis, at } = self.planes[node.plane];
            let sides = node.sides();
            let is_upper = usize::from(rank >= sides[1].first);
            (node, share) = (sides[is_upper], share.split(axis, at)[is_upper]);
        }
        share
    }

    /// Returns the ranks in depth order, front first.
    #[must_use]
    pub fn order(&self, from: &Viewpoint) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.ranks);
        let mut stack = vec![TreeNode { first: 0, end: self.ranks, plane: 0 }];
        while let Some(node) = stack.pop() {
            if node.is_leaf() {
                order.push(node.first);
                continue;
            }
            let [lower, upper] = node.sides();
            let is_lower_first = from.sees_lower_first(&self.planes[node.plane]);
            stack.extend(if is_lower_first { [upper, lower] } else { [lower, upper] });
        }
        order
    }

    /// Serializes the tree: a byte and a little-endian `f64` for each plane.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let plane = |plane: &CutPlane| {
            let mut bytes = vec![u8::try_from(plane.axis).unwrap_or(u8::MAX)];
            bytes.extend(plane.at.to_le_bytes());
            bytes
        };
        self.planes.iter().flat_map(plane).collect()
    }

    /// Reads the bytes that [`KdTree::to_bytes`] wrote, for a tree of `ranks` ranks.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are no such tree.
    pub fn from_bytes(bytes: &[u8], ranks: usize) -> Result<Self> {
        Self::check(ranks)?;
        let bad = || Error::corrupt(format!("expected {} planes, found {} bytes", ranks - 1, bytes.len()));
        let (planes, rest) = bytes.as_chunks::<9>();
        let plane =
            |[axis, at @ ..]: &[u8; 9]| CutPlane { axis: usize::from(*axis), at: f64::from_le_bytes(*at) };
        let planes: Vec<CutPlane> = planes.iter().map(plane).collect();
        let is_legal = planes.iter().all(|plane| plane.axis < 3 && plane.at.is_finite());
        if !rest.is_empty() || planes.len() != ranks - 1 || !is_legal {
            return Err(bad());
        }
        Ok(Self { ranks, planes })
    }
}

/// Returns the box of all voxels.
fn volume_box(scene: &Scene) -> SubVolume {
    let [z, y, x] = scene.view.levels[0].shape;
    SubVolume { low: [-0.5; 3], high: [x, y, z].map(|n| n as f64 - 0.5) }
}

/// Returns the axis of the largest extent of the work, in voxels; that of the box if there is no work.
fn longest_axis(within: &SubVolume, points: &[WorkPoint]) -> usize {
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    for point in points {
        (low, high) = (low.min(point.at.into()), high.max(point.at.into()));
    }
    if points.is_empty() {
        (low, high) = (within.low.into(), within.high.into());
    }
    (high - low).max_position()
}

/// Returns the position of a cut that has about this share of the work of sorted `points` below it.
fn place(
    scene: &Scene,
    axis: usize,
    within: &SubVolume,
    points: &[WorkPoint],
    share: f64,
    ranks: usize,
) -> f64 {
    let total: f64 = points.iter().map(|point| point.work).sum();
    let (low, high) = (within.low[axis], within.high[axis]);
    // One point near the eye may be all the work of several ranks.
    if total <= 0.0 || points.len() < 2 {
        return low + (high - low) * share;
    }
    let below =
        |at: f64| points.iter().take_while(|point| point.at[axis] < at).map(|point| point.work).sum::<f64>();
    let mut sum = 0.0;
    let first_above = points.iter().position(|point| {
        sum += point.work;
        sum > total * share
    });
    let index = first_above.unwrap_or(points.len() - 1).max(1).min(points.len() - 1);
    let exact = (points[index - 1].at[axis] + points[index].at[axis]) / 2.0;
    let error = |at: f64| (below(at) - total * share).abs() / total * ranks as f64;
    let near = borders(scene, axis, exact).into_iter().filter(|&at| at > low && at < high);
    let best = near.map(|at| (error(at), at)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(error, _)| *error <= TOLERANCE).map_or(exact, |(_, at)| at)
}

/// Returns the nearest positions on both sides of `at` where a plane needs the fewest blocks.
fn borders(scene: &Scene, axis: usize, at: f64) -> [f64; 2] {
    let rank = scene.view.level_index_of(scene.finest_level).unwrap_or(0);
    scene.view.levels[rank].block_starts_around(axis, at, SubVolume::BORDER_IN_BLOCK)
}
