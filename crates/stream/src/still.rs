//! Single finished pictures, as `corridor render` makes them.

use std::sync::Arc;

use array::{Error, Result, Source};
use render::{Image, ImageSize, Slabs};
use session::{FidelityBadge, ValueSummary};
use view::{TransferChoice, View};

use crate::film::{ColorRange, Film, FilmRequest};
use crate::painter::DrawResources;
use crate::ranks::launcher::PixelPrecision;

/// Description of a still picture to draw.
#[derive(Clone, Debug)]
pub struct StillRequest {
    /// View to draw; `None` for the default array. Camera and transfer function may be omitted.
    pub view: Option<View>,
    /// Choice of a transfer function that replaces that of the view or the default, or parts of it.
    pub choice: Option<TransferChoice>,
    /// Size of the picture, pixels.
    pub size: ImageSize,
    /// Memory for blocks, and the painter.
    pub resources: DrawResources,
}

/// Finished picture.
#[derive(Clone, Debug)]
pub struct Still {
    /// Image in full precision; see [`Image::to_png`].
    pub image: Image,
    /// Fidelity badge of the picture.
    pub fidelity: FidelityBadge,
    /// View with all omitted fields filled in.
    pub view: View,
    /// Slabs of the picture, if requested.
    pub slabs: Option<Slabs>,
    /// Statistics of the values shown; `None` if no block was read.
    pub values: Option<ValueSummary>,
}

/// Draws one picture with all its blocks: equal requests over equal data give equal pictures. Calls
/// `progress` with the numbers of blocks that are loaded and wanted.
///
/// Call it within a tokio runtime.
///
/// # Errors
/// `Invalid` and others for a view that does not fit the data set; the error of a block that cannot be
/// loaded.
///
/// # Cancel safety
/// Dropping the future cancels all wants and the drawing.
pub async fn render_still(
    source: Arc<dyn Source>,
    request: StillRequest,
    progress: impl FnMut(u64, u64),
) -> Result<Still> {
    let StillRequest { view, choice, size, resources } = request;
    let range = ColorRange::Usual;
    let dataset = source.describe().await?;
    let view = view.map_or_else(|| View::first_of(&dataset), Ok)?;
    let views = vec![view];
    let request = FilmRequest {
        views,
        choice,
        range,
        size,
        resources,
        slabs: None,
        rank_group: None,
        pixels: PixelPrecision::default(),
    };
    let mut film = Film::of(source, dataset, request).await?;
    let still = film.next(progress).await?;
    still.ok_or_else(|| Error::internal("a film of one view gave no picture"))
}
