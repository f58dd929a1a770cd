//! One finished picture without anybody looking: what `corridor render` makes.

use std::sync::Arc;

use array::{Error, Result, Source};
use render::{Image, ImageSize, Slabs};
use session::{FidelityBadge, ValueSummary};
use view::View;

use crate::film::{ColorRange, Film, FilmRequest};
use crate::painter::DrawResources;
use crate::ranks::launcher::PixelPrecision;

/// Description of a still picture to draw.
#[derive(Clone, Debug)]
pub struct StillRequest {
    /// View to draw; `None` for the first volume there is. Camera and transfer function may be left open.
    pub view: Option<View>,
    /// The name of a color map, instead of the one in the view or the one that is chosen.
    pub color_map: Option<String>,
    /// Pixels.
    pub size: ImageSize,
    /// Memory limit of blocks, and the painter.
    pub resources: DrawResources,
}

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Still {
    /// Full precision; see [`Image::to_png`].
    pub image: Image,
    /// Truth badge of the picture.
    pub fidelity: FidelityBadge,
    /// The view with everything filled in that was left open.
    pub view: View,
    /// The slabs beside it, where they were asked for.
    pub slabs: Option<Slabs>,
    /// Statistics of the values that it shows; `None` where no block was read.
    pub values: Option<ValueSummary>,
}

/// Draws one picture with every block it wants: the same request over the same data gives the same picture.
/// `progress` hears how many blocks are there and how many are wanted.
///
/// Call it within a tokio runtime.
///
/// # Errors
/// What does not fit in the view, and the reason why a block cannot be had.
///
/// # Cancel safety
/// Dropping it withdraws every want and stops the drawing.
pub async fn render_still(
    source: Arc<dyn Source>,
    request: StillRequest,
    progress: impl FnMut(u64, u64),
) -> Result<Still> {
    let StillRequest { view, color_map, size, resources } = request;
    let range = ColorRange::Usual;
    let dataset = source.describe().await?;
    let view = view.map_or_else(|| View::first_of(&dataset), Ok)?;
    let views = vec![view];
    let request = FilmRequest {
        views,
        color_map,
        range,
        size,
        resources,
        slabs: None,
        rank_group: None,
        pixels: PixelPrecision::default(),
    };
    let mut film = Film::of(source, dataset, request).await?;
    let still = film.next(progress).await?;
    still.ok_or_else(|| Error::internal("expected a picture of one view, found none"))
}
