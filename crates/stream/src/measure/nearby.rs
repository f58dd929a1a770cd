//! Blocks along the ray of a pixel, loaded for a single pick where no picture of the view has loaded them: nobody looks
//! at the view, or several ranks share its blocks.

use std::sync::Arc;
use std::time::Duration;

use array::{Completion, Error, ErrorKind, Priority, Result, Source, Urgency, want};
use futures::StreamExt;
use render::{Demand, ImageSize, Scene, camera_around};

use super::subject::Subject;
use crate::loading::drawable::Drawable;
use crate::loading::volume::Volume;
use crate::viewer::scene::portion_of;

/// Pixels of a side of the square that is loaded: the ray, and what is interpolated with it.
const PIXELS: u32 = 4;
/// Longest time for these blocks that somebody waits for.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Loads the blocks that a picture of a few pixels around a position needs, within `memory_bytes`; returns them with
/// the number of their finest level, or `None` where nothing of the array lies at the position.
///
/// # Errors
/// `TimedOut`; the errors of the source.
///
/// # Cancel safety
/// Dropping the future cancels all wants.
pub(crate) async fn load(
    source: &dyn Source,
    subject: &Subject,
    scene: &Scene,
    position: [f64; 2],
    memory_bytes: usize,
) -> Result<Option<(Drawable, u8)>> {
    let camera = camera_around(scene, position, PIXELS)?;
    let size = ImageSize { width: PIXELS, height: PIXELS };
    let portion = portion_of(&subject.view, &subject.volume);
    let demand: Demand =
        render::demand(&subject.volume, &camera, size, &portion, subject.view.level, memory_bytes)?;
    if demand.blocks.is_empty() {
        return Ok(None);
    }
    let volume = Arc::new(Volume::alone(Arc::clone(&subject.volume), &subject.dataset, memory_bytes)?);
    let urgency = Urgency { priority: Priority::INTERACTIVE, deadline: None };
    let (wants, _handles): (Vec<_>, Vec<_>) =
        demand.blocks.iter().map(|block| want(block.key, urgency)).unzip();
    let loading = async {
        let mut blocks = source.blocks(wants);
        while let Some(Completion { result, .. }) = blocks.next().await {
            let (volume, block) = (Arc::clone(&volume), result?);
            crate::tasks::blocking(move || volume.insert(&block)).await??;
        }
        Ok::<_, Error>(())
    };
    tokio::time::timeout(LOAD_TIMEOUT, loading).await.map_err(|_elapsed| {
        let secs = LOAD_TIMEOUT.as_secs();
        Error::new(ErrorKind::TimedOut, format!("what lies there did not arrive within {secs} s"))
    })??;
    Ok(Some((Drawable::new(volume, None, Vec::new()), demand.wanted)))
}
