//! Values and measurements of what a picture shows, read from the source at full resolution.
//!
//! A picture is drawn from blocks of some level, on even grids and as colors. Here a position in it, or in world space,
//! is followed back to the elements that are stored, so that every number equals that of the file at the indices given.
//!
//! | file | contents |
//! |---|---|
//! | `request.rs` | parameters of the operations |
//! | `subject.rs` | the array of a view: its volume, and the map from voxels to stored elements |
//! | `nearby.rs` | blocks along the ray of a pixel, where no picture of the view has loaded them |
//! | `pick.rs` | what a position in a picture shows, and its value |
//! | `element.rs` | a stored element: its value decoded, missing or named, and its position on the axes |
//! | `gather.rs` | elements of a list of indices, read in few boxes |
//! | `line.rs` | values along a line, and at points |
//! | `series.rs` | values over time at a point |
//! | `plot.rs` | values of an array with one long axis |
//! | `region.rs` | elements in a box or a polygon, for statistics |

pub(crate) mod element;
pub(crate) mod gather;
pub(crate) mod line;
pub(crate) mod nearby;
pub(crate) mod pick;
pub(crate) mod plot;
pub(crate) mod region;
pub(crate) mod request;
pub(crate) mod series;
pub(crate) mod subject;

use array::Result;
use view::View;

use self::line::{LineProfile, PointValues};
use self::pick::PickAnswer;
use self::plot::{PlotColumns, PlotRange};
use self::region::StoredRegion;
use self::request::{PickRequest, ViewChoice, ViewMeasurement};
use self::series::TimeSeries;
use self::subject::Subject;
use crate::Session;

impl Session {
    /// Returns a view that a request names, with its changed fields.
    ///
    /// # Errors
    /// `Invalid` and others for a view that does not fit the data set; `Stale` while the data are being described again.
    pub fn view_for(&self, choice: &ViewChoice) -> Result<View> {
        Subject::of(self.shared(), choice).map(|subject| subject.view)
    }

    /// Returns what positions in a picture show, with the values there. Blocks that no picture has loaded take up to
    /// `memory_bytes`.
    ///
    /// # Errors
    /// `Invalid` and others for a view that does not fit the data set, `Busy` while nothing of it is loaded, `TimedOut`
    /// if blocks do not arrive. A value that cannot be read is no error: the answer says so.
    ///
    /// # Cancel safety
    /// Dropping the future stops reading.
    pub async fn pick(&self, request: &PickRequest, memory_bytes: usize) -> Result<PickAnswer> {
        pick::pick(self.shared(), request, memory_bytes).await
    }

    /// Returns the values along a line; `on_read` gets the number of samples read and of all samples.
    ///
    /// # Errors
    /// `Invalid` and others for a view that does not fit the data set; the errors of the source.
    ///
    /// # Cancel safety
    /// Dropping the future stops reading.
    pub async fn profile(
        &self,
        choice: &ViewChoice,
        [from, to]: [[f64; 3]; 2],
        samples: Option<u32>,
        on_read: impl FnMut(u64, u64) + Send,
    ) -> Result<LineProfile> {
        line::profile(&Subject::of(self.shared(), choice)?, from, to, samples, on_read).await
    }

    /// Returns the values at points; `on_read` gets the number of points read and of all points.
    ///
    /// # Errors
    /// As [`Session::profile`].
    ///
    /// # Cancel safety
    /// Dropping the future stops reading.
    pub async fn points(
        &self,
        choice: &ViewChoice,
        points: &[[f64; 3]],
        on_read: impl FnMut(u64, u64) + Send,
    ) -> Result<PointValues> {
        line::points(&Subject::of(self.shared(), choice)?, points, on_read).await
    }

    /// Returns the values over time at a point; `on_read` gets the number of steps read and of all steps.
    ///
    /// # Errors
    /// As [`Session::profile`]; `Invalid` for an array without a time axis and a point outside of the array.
    ///
    /// # Cancel safety
    /// Dropping the future stops reading.
    pub async fn series(
        &self,
        choice: &ViewChoice,
        at: [f64; 3],
        on_read: impl FnMut(u64, u64) + Send,
    ) -> Result<TimeSeries> {
        series::series(&Subject::of(self.shared(), choice)?, at, on_read).await
    }

    /// Returns the values of an array along its only long axis, each or the extremes of many; `on_read` gets the number of
    /// elements read and of all elements.
    ///
    /// # Errors
    /// As [`Session::profile`]; `Unsupported` for an array that is no line, `Invalid` for a part outside of it.
    ///
    /// # Cancel safety
    /// Dropping the future stops reading.
    pub async fn plot(
        &self,
        choice: &ViewChoice,
        range: PlotRange,
        on_read: impl FnMut(u64, u64) + Send,
    ) -> Result<PlotColumns> {
        plot::plot(&Subject::of(self.shared(), choice)?, range, on_read).await
    }

    /// Finds the stored elements of a box or a polygon, to compute statistics of them.
    ///
    /// # Errors
    /// As [`Session::profile`]; `Invalid` for a region without elements, `TooLarge` for one of too many cells.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn region(&self, choice: &ViewChoice, measurement: ViewMeasurement) -> Result<StoredRegion> {
        let subject = Subject::of(self.shared(), choice)?;
        crate::tasks::blocking(move || StoredRegion::of(&subject, &measurement)).await?
    }
}
