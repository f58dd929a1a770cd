//! Pictures of any size, drawn in rows in bounded memory: single PNG files, of one view or of several side by side, with
//! or without annotations and background. What a picture shows is written into the file, as text.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use array::{Dataset, Error, Result, Source};
use render::{
    Background, Cancel, Image, ImageSize, LinePlot, Notes, PngText, ROW_UNIT, Rect, annotate_rows,
    png_in_rows, stereo,
};
use serde_json::json;
use session::{FidelityBadge, ValueSummary};
use stream::{BAND_PIXELS, DrawResources, Film, FilmRequest, PixelPrecision, Regridded, RowPicture};
use tokio::sync::watch;
use view::View;

use crate::film::{annotations, line_plot};
use crate::output::AtomicOutput;
use crate::picture::{PictureRequest, framed_view, transfer_choice};

/// Most pictures side by side in one file: as many as the viewer's page has.
pub const MAX_PANES: usize = 10;

/// Picture of several views side by side.
#[derive(Clone, Debug)]
pub struct SheetRequest {
    /// Size of the whole picture.
    pub size: ImageSize,
    /// Parts, which do not overlap.
    pub panes: Vec<SheetPane>,
    /// Whether the picture has no background: where nothing is drawn, it is transparent.
    pub is_transparent: bool,
    /// Whether the volume's box, axes, a scale bar and legends are drawn.
    pub is_annotated: bool,
}

/// Part of a picture.
#[derive(Clone, Debug)]
pub struct SheetPane {
    /// View that it shows.
    pub picture: PictureRequest,
    /// Its place, within the whole picture.
    pub rect: Rect,
}

impl SheetRequest {
    /// Requests a picture of one view.
    #[must_use]
    pub fn single(picture: PictureRequest, size: ImageSize) -> Self {
        let panes = vec![SheetPane { picture, rect: Rect::whole(size) }];
        Self { size, panes, is_transparent: false, is_annotated: false }
    }

    /// Checks sizes and places.
    ///
    /// # Errors
    /// `Invalid`, with what to do.
    pub fn check(&self) -> Result<()> {
        self.size.check_sides()?;
        let count = self.panes.len();
        if count == 0 || count > MAX_PANES {
            return Err(Error::invalid(format!(
                "expected 1 to {MAX_PANES} pictures side by side, found {count}"
            )));
        }
        for (number, SheetPane { rect, .. }) in self.panes.iter().enumerate() {
            if rect.is_empty() || !rect.is_within(self.size) {
                return Err(Error::invalid(format!(
                    "expected every part inside of a picture of {}x{} pixels, found {rect:?}",
                    self.size.width, self.size.height
                )));
            }
            if self.panes[..number].iter().any(|other| !other.rect.intersection(rect).is_empty()) {
                return Err(Error::invalid(format!("expected parts that do not overlap, found {rect:?}")));
            }
        }
        Ok(())
    }
}

/// Stage of making a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheetStage {
    /// Loading blocks.
    Blocks,
    /// Drawing rows.
    Rows,
}

/// Facts about a picture that was drawn.
#[derive(Clone, Debug)]
pub struct DrawnSheet {
    /// Record of the content of each part.
    pub fidelity: Vec<FidelityBadge>,
    /// View of each part, with all defaults filled in.
    pub views: Vec<View>,
    /// Statistics of the values that the parts show, if known.
    pub values: Vec<Option<ValueSummary>>,
}

impl DrawnSheet {
    /// Returns what the picture shows, in sentences.
    #[must_use]
    pub fn text(&self) -> String {
        let mut texts: Vec<&str> = self.fidelity.iter().map(|badge| badge.text.as_str()).collect();
        texts.dedup();
        texts.join(" ")
    }

    /// Returns the texts of a PNG file.
    fn png_texts(&self) -> Vec<PngText> {
        let views = if let [one] = &self.views[..] { json!(one) } else { json!(self.views) };
        vec![
            PngText { keyword: "Software", text: concat!("Corridor ", env!("CARGO_PKG_VERSION")).into() },
            PngText { keyword: "Comment", text: self.text() },
            PngText { keyword: "Corridor fidelity", text: json!(self.fidelity).to_string() },
            PngText { keyword: "Corridor view", text: views.to_string() },
        ]
    }
}

/// Returns the texts of a PNG file of one picture.
pub(crate) fn png_texts(fidelity: &FidelityBadge, view: &View) -> Vec<PngText> {
    DrawnSheet { fidelity: vec![fidelity.clone()], views: vec![view.clone()], values: Vec::new() }.png_texts()
}

/// Draws a picture into a PNG file at `output`, which appears when it is complete. `progress` is called with the blocks
/// loaded and wanted, then with the rows drawn and wanted.
///
/// # Errors
/// As [`draw_png`]; `Io`.
///
/// # Cancel safety
/// Dropping the future ends the drawing and removes the unfinished file.
pub async fn draw_png_file(
    source: &Arc<dyn Source>,
    request: &SheetRequest,
    resources: DrawResources,
    output: &Path,
    progress: impl FnMut(SheetStage, u64, u64),
) -> Result<DrawnSheet> {
    let draft = AtomicOutput::beside(output)?;
    let file = BufWriter::new(std::fs::File::create_new(&draft.path).map_err(|e| draft.failed(e))?);
    let drawn = draw_png(source, request, resources, file, progress).await?;
    draft.keep()?;
    Ok(drawn)
}

/// Draws a picture as PNG into `out`, whose errors end the drawing.
///
/// # Errors
/// The errors of the views, and of blocks that cannot be fetched; `Io` if `out` does not take the bytes.
///
/// # Cancel safety
/// Dropping the future ends the drawing, within the time of some thousand pixels.
pub async fn draw_png(
    source: &Arc<dyn Source>,
    request: &SheetRequest,
    resources: DrawResources,
    out: impl Write + Send + 'static,
    mut progress: impl FnMut(SheetStage, u64, u64),
) -> Result<DrawnSheet> {
    let mut sheet = Sheet::open(source, request, resources, &mut progress).await?;
    let (size, background) = (request.size, sheet.background(request.is_transparent));
    let drawing = move |cancel: Cancel, done: watch::Sender<u64>| {
        let mut drawn = None;
        png_in_rows(out, size, background, |take| {
            sheet.draw(&cancel, |rows| {
                take(rows)?;
                done.send_modify(|done| *done += u64::from(rows.size.height));
                Ok(())
            })?;
            Ok(drawn.insert(sheet.facts()?).png_texts())
        })?;
        drawn.ok_or_else(|| Error::internal("a picture was written without being drawn"))
    };
    in_rows(size.height, drawing, progress).await
}

/// Draws a picture of one view, and passes the rows to `take`, from the top down.
///
/// # Errors
/// As [`draw_png`]; those of `take`.
///
/// # Cancel safety
/// As [`draw_png`].
pub async fn draw_rows(
    source: &Arc<dyn Source>,
    picture: &PictureRequest,
    size: ImageSize,
    resources: DrawResources,
    mut take: impl FnMut(&Image, &View) -> Result<()> + Send + 'static,
) -> Result<DrawnSheet> {
    let request = SheetRequest::single(picture.clone(), size);
    let mut sheet = Sheet::open(source, &request, resources, &mut |_, _, _| ()).await?;
    let drawing = move |cancel: Cancel, _: watch::Sender<u64>| {
        let view = sheet.views().first().cloned().unwrap_or_default();
        sheet.draw(&cancel, |rows| take(rows, &view))?;
        sheet.facts()
    };
    in_rows(size.height, drawing, |_, _, _| ()).await
}

/// Sets the flag when it is dropped, so that a drawing ends with the future that waits for it.
struct CancelWithFuture(Cancel);

impl Drop for CancelWithFuture {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs a drawing on a thread for it, and reports the rows drawn.
async fn in_rows<T: Send + 'static>(
    rows: u32,
    drawing: impl FnOnce(Cancel, watch::Sender<u64>) -> Result<T> + Send + 'static,
    mut progress: impl FnMut(SheetStage, u64, u64),
) -> Result<T> {
    let guard = CancelWithFuture(Cancel::default());
    let (cancel, (sender, mut done)) = (guard.0.clone(), watch::channel(0));
    let mut task = tokio::task::spawn_blocking(move || drawing(cancel, sender));
    progress(SheetStage::Rows, 0, rows.into());
    loop {
        tokio::select! {
            biased;
            Ok(()) = done.changed() => {
                let done = *done.borrow_and_update();
                progress(SheetStage::Rows, done, rows.into());
            }
            end = &mut task => {
                return end.map_err(|e| Error::internal(format!("a picture could not be drawn: {e}")))?;
            }
        }
    }
}

/// Parts of a picture that are ready to be drawn.
struct Sheet {
    size: ImageSize,
    panes: Vec<PaneDrawing>,
}

/// Part of a picture that is ready to be drawn.
struct PaneDrawing {
    rect: Rect,
    picture: RowPicture,
    notes: Option<Notes>,
    /// Plot that replaces the picture of an array with one long axis; it has axes of its own.
    plot: Option<LinePlot>,
    /// Fetches the blocks as long as it lives.
    _film: Film,
    /// Rows of the part that were drawn last: the first one, and their pixels.
    band: Option<(u32, Image)>,
}

impl Sheet {
    /// Loads the blocks of all parts, each within its share of the memory.
    async fn open(
        source: &Arc<dyn Source>,
        request: &SheetRequest,
        resources: DrawResources,
        progress: &mut impl FnMut(SheetStage, u64, u64),
    ) -> Result<Self> {
        request.check()?;
        let drawn = Arc::new(Regridded::open(Arc::clone(source)).await?);
        let dataset = drawn.describe().await?;
        let resources = resources.divided(request.panes.len() as u64);
        let mut panes = Vec::with_capacity(request.panes.len());
        for pane in &request.panes {
            let resources = resources.clone();
            let sources = (&**source, &drawn);
            panes.push(
                PaneDrawing::open(sources, &dataset, pane, request.is_annotated, resources, progress).await?,
            );
        }
        Ok(Self { size: request.size, panes })
    }

    fn views(&self) -> Vec<View> {
        self.panes.iter().map(|pane| pane.picture.view().clone()).collect()
    }

    /// Returns the background of the file: that of the first view.
    fn background(&self, is_transparent: bool) -> Background {
        match self.panes.first().filter(|_| !is_transparent) {
            Some(pane) => Background::Color(pane.picture.view().background.map(|c| f32::from(c) / 255.0)),
            None => Background::Transparent,
        }
    }

    fn facts(&self) -> Result<DrawnSheet> {
        let facts = self.panes.iter().map(|pane| pane.picture.facts()).collect::<Result<Vec<_>>>()?;
        let (fidelity, values) = facts.into_iter().unzip();
        Ok(DrawnSheet { fidelity, views: self.views(), values })
    }

    /// Draws all rows, from the top down.
    fn draw(&mut self, cancel: &Cancel, mut take: impl FnMut(&Image) -> Result<()>) -> Result<()> {
        let ImageSize { width, height } = self.size;
        if let [pane] = &mut self.panes[..]
            && pane.rect == Rect::whole(self.size)
        {
            return pane.picture.bands().try_for_each(|rows| take(&pane.draw(rows, cancel)?));
        }
        let rows = u32::try_from(BAND_PIXELS / u64::from(width)).unwrap_or(1).max(ROW_UNIT);
        for top in (0..height).step_by(rows as usize) {
            let size = ImageSize { width, height: rows.min(height - top) };
            let mut image = Image { size, rgba: vec![[0.0; 4]; width as usize * size.height as usize] };
            for pane in &mut self.panes {
                pane.copy_into(&mut image, top, cancel)?;
            }
            take(&image)?;
        }
        Ok(())
    }
}

impl PaneDrawing {
    /// Loads the blocks of a part; `stored` are the data as they are in the file, `source` as they are drawn.
    async fn open(
        (stored, source): (&dyn Source, &Arc<Regridded>),
        dataset: &Dataset,
        pane: &SheetPane,
        is_annotated: bool,
        resources: DrawResources,
        progress: &mut impl FnMut(SheetStage, u64, u64),
    ) -> Result<Self> {
        let size = ImageSize { width: pane.rect.width, height: pane.rect.height };
        let request = FilmRequest {
            views: vec![framed_view(&pane.picture, is_annotated, size, dataset, source)?],
            choice: transfer_choice(&pane.picture)?,
            range: pane.picture.range,
            size,
            resources,
            slabs: None,
            rank_group: None,
            pixels: PixelPrecision::default(),
        };
        let mut film = Film::open(Arc::clone(source) as Arc<dyn Source>, request).await?;
        let picture = film.next_in_rows(|done, total| progress(SheetStage::Blocks, done, total)).await?;
        let picture = picture.ok_or_else(|| Error::internal("expected a picture of one view, found none"))?;
        let plot = line_plot(stored, picture.view(), size.width).await?;
        let is_annotated = is_annotated && plot.is_none();
        let notes = is_annotated.then(|| annotations(picture.view(), size, dataset)).transpose()?;
        Ok(Self { rect: pane.rect, picture, notes, plot, _film: film, band: None })
    }

    /// Draws rows of this part, with its annotations.
    fn draw(&mut self, rows: std::ops::Range<u32>, cancel: &Cancel) -> Result<Image> {
        let whole = ImageSize { width: self.rect.width, height: self.rect.height };
        let top = rows.start;
        let mut image = self.picture.draw(rows.clone(), cancel)?;
        if let Some(plot) = &self.plot {
            // The picture states what was read, and is not shown.
            image = plot.draw_rows(whole, rows);
        }
        match (&self.notes, self.picture.view().stereo) {
            (Some(notes), Some(parallax)) => {
                stereo::annotate_pair_rows(&mut image, top, whole, notes, parallax)?;
            }
            (Some(notes), None) => annotate_rows(&mut image, top, whole, notes)?,
            (None, _) => {}
        }
        Ok(image)
    }

    /// Draws what this part has in rows of the whole picture, which begin at `top`.
    fn copy_into(&mut self, image: &mut Image, top: u32, cancel: &Cancel) -> Result<()> {
        let Rect { left, top: own_top, width, height } = self.rect;
        let (from, to) = (top.max(own_top), (top + image.size.height).min(own_top + height));
        for row in from..to {
            let own_row = row - own_top;
            let pixels = self.row(own_row, cancel)?;
            let start = (row - top) as usize * image.size.width as usize + left as usize;
            image.rgba[start..start + width as usize].copy_from_slice(pixels);
        }
        Ok(())
    }

    /// Returns a row of this part; rows are requested in order.
    fn row(&mut self, row: u32, cancel: &Cancel) -> Result<&[[f32; 4]]> {
        let is_drawn = |(top, band): &(u32, Image)| (*top..*top + band.size.height).contains(&row);
        if !self.band.as_ref().is_some_and(is_drawn) {
            let rows = self.picture.bands().find(|rows| rows.contains(&row));
            let rows = rows.ok_or_else(|| Error::internal("a row lies outside of its picture"))?;
            // The old rows are dropped first.
            self.band = None;
            self.band = Some((rows.start, self.draw(rows, cancel)?));
        }
        let (top, band) =
            self.band.as_ref().ok_or_else(|| Error::internal("rows were drawn and are not there"))?;
        let width = band.size.width as usize;
        let start = (row - top) as usize * width;
        Ok(&band.rgba[start..start + width])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use array::conformance::{MemorySource, one_array};

    use super::*;

    const SIZE: ImageSize = ImageSize { width: 900, height: 640 };

    fn line() -> Arc<dyn Source> {
        let dataset = one_array("|u1".parse().unwrap(), &[500], &[100]);
        let values: Vec<u8> = (0..500u32).map(|n| (n % 199).to_le_bytes()[0]).collect();
        Arc::new(MemorySource::new(dataset, vec![vec![values.into()]]).unwrap())
    }

    #[tokio::test]
    async fn arrays_with_one_long_axis_are_plots_in_rows_too() {
        let source = line();
        let rows = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&rows);
        let take = move |image: &Image, _: &View| {
            taken.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&image.rgba);
            Ok(())
        };
        let resources = || DrawResources::from(64u64 << 20);
        let drawn = draw_rows(&source, &PictureRequest::default(), SIZE, resources(), take).await.unwrap();
        let plot = line_plot(&*source, &drawn.views[0], SIZE.width).await.unwrap().unwrap();
        let whole = plot.draw(SIZE);
        assert!(*rows.lock().unwrap() == whole.rgba);
        // With annotations, which a plot has of its own, and beside another picture.
        let request =
            SheetRequest { is_annotated: true, ..SheetRequest::single(PictureRequest::default(), SIZE) };
        let mut sheet = Sheet::open(&source, &request, resources(), &mut |_, _, _| ()).await.unwrap();
        let mut all = Vec::new();
        sheet
            .draw(&Cancel::default(), |rows| {
                all.extend_from_slice(&rows.rgba);
                Ok(())
            })
            .unwrap();
        assert!(all == whole.rgba);
    }

    #[tokio::test]
    async fn many_parts_share_little_memory() {
        let source = line();
        let width = SIZE.width / 10;
        let pane = |number: u32| SheetPane {
            picture: PictureRequest::default(),
            rect: Rect { left: number * width, top: 0, width, height: SIZE.height },
        };
        let panes = (0..10).map(pane).collect();
        let request = SheetRequest { panes, ..SheetRequest::single(PictureRequest::default(), SIZE) };
        let resources = DrawResources::from(stream::MIN_MEMORY_BYTES);
        draw_png(&source, &request, resources, std::io::sink(), |_, _, _| ()).await.unwrap();
    }
}
