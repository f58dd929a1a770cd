//! Geometry that views name: files beside the data, files that the user of this process named, and the bundled outline of coasts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ::geometry::{Geometry, GeometrySpace, is_geometry_name};
use array::{Error, Result};
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use serde_json::{Value, json};
use server::exports::Export;
use server::geometry_origin::{GeometryOrigin, read_piece};
use server::stack::Stack;
use stream::GeometryFetch;
use view::View;

/// Returns the source of geometry for pictures that the user of this process requests: any file that they can read, or one
/// beside the data.
#[must_use]
pub fn for_user(stack: &Stack) -> GeometryFetch {
    let origin = stack.geometry.clone();
    Arc::new(move |name: String| {
        let origin = origin.clone();
        async move { fetch(&origin, &name, true).await }.boxed()
    })
}

/// Returns the source of geometry for a session: files beside the data, which participants may name, and those of the first view,
/// which the user of this process named.
#[must_use]
pub fn for_session(export: Arc<Export>, first_view: Option<&View>) -> GeometryFetch {
    let layers = first_view.into_iter().flat_map(|view| &view.layers);
    let own: Arc<BTreeSet<String>> = Arc::new(layers.filter_map(|layer| layer.geometry.clone()).collect());
    Arc::new(move |name: String| {
        let (export, own) = (Arc::clone(&export), Arc::clone(&own));
        async move { fetch(&export.stack().await?.geometry, &name, own.contains(&name)).await }.boxed()
    })
}

/// Fetches a geometry by name; of a file elsewhere on this machine only if the name is `trusted`.
async fn fetch(origin: &GeometryOrigin, name: &str, trusted: bool) -> Result<Bytes> {
    if trusted && Path::new(name).is_file() {
        return read_file(name.to_owned()).await;
    }
    match (origin.fetch(name).await, name) {
        (Err(_), COASTS_NAME) => Ok(Bytes::from_static(COASTS)),
        (found, _) => found,
    }
}

/// Name of the bundled outline of coasts, used if there is no such file beside the data.
pub const COASTS_NAME: &str = "coasts.geojson";
/// Coasts of the world in longitude and latitude; see `data/README.md`.
const COASTS: &[u8] = include_bytes!("../../../data/coasts.geojson");

/// Reads a file of the user.
///
/// # Errors
/// Those of [`read_piece`].
///
/// # Cancel safety
/// Safe.
pub async fn read_file(name: String) -> Result<Bytes> {
    let read = move || {
        let mut bytes = BytesMut::new();
        loop {
            let (body, piece) = read_piece(Path::new(&name), bytes.len() as u64)?;
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 >= body.size_bytes || piece.is_empty() {
                return Ok(bytes.freeze());
            }
        }
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|e| Error::internal(format!("reading a geometry ended: {e}")))?
}

/// Description of a file of geometry.
pub struct GeometryDescription(Geometry);

/// Reads the geometry at a location; `None` for locations that are no file of geometry.
///
/// # Errors
/// Those of reading the file.
///
/// # Cancel safety
/// Safe.
pub async fn description(location: &str) -> Result<Option<GeometryDescription>> {
    if !is_geometry_name(location) || !Path::new(location).is_file() {
        return Ok(None);
    }
    let bytes = read_file(location.to_owned()).await?;
    let name = location.to_owned();
    let read = tokio::task::spawn_blocking(move || ::geometry::read(&name, &bytes)).await;
    let geometry = read.map_err(|e| Error::internal(format!("reading a geometry ended: {e}")))??;
    Ok(Some(GeometryDescription(geometry)))
}

impl GeometryDescription {
    /// Returns the description for programs.
    ///
    /// # Errors
    /// `Internal` if it cannot be represented in JSON.
    pub fn json(&self) -> Result<String> {
        let Geometry {
            format,
            positions,
            triangles,
            lines,
            points,
            texts,
            colors,
            values,
            space,
            is_flat,
            notes,
        } = &self.0;
        let values: Vec<Value> =
            values.iter().map(|own| json!({"name": own.name, "range": range(&own.values)})).collect();
        let description = json!({
            "geometry": format,
            "vertices": positions.len(),
            "triangles": triangles.len(),
            "segments": lines.len(),
            "points": points.len(),
            "texts": texts.len(),
            "colors": !colors.is_empty(),
            "values": values,
            "bounds": self.0.bounds(),
            "space": if *space == GeometrySpace::Geographic { "geographic" } else { "world" },
            "flat": is_flat,
            "notes": notes,
        });
        let text = serde_json::to_string_pretty(&description);
        text.map_err(|e| Error::internal(format!("a description in JSON: {e}")))
    }

    /// Returns the description for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Geometry {
            format, positions, triangles, lines, points, texts, colors, values, space, notes, ..
        } = &self.0;
        let counts = [
            (positions.len(), "vertices"),
            (triangles.len(), "triangles"),
            (lines.len(), "segments of lines"),
            (points.len(), "points"),
            (texts.len(), "texts"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let mut text = format!("{format}: {}\n", counts.join(", "));
        if let Some([low, high]) = self.0.bounds() {
            let axes = match space {
                GeometrySpace::World => ["x", "y", "z"],
                GeometrySpace::Geographic => ["longitude", "latitude", "height"],
            };
            for (axis, name) in axes.iter().enumerate() {
                text += &format!("  {name}: {} to {}\n", low[axis], high[axis]);
            }
        }
        if !colors.is_empty() {
            text += "  colors by vertex\n";
        }
        for own in values {
            let range = range(&own.values)
                .map_or_else(|| "none".to_owned(), |[low, high]| format!("{low} to {high}"));
            text += &format!("  values `{}`: {range}\n", own.name);
        }
        for note in notes {
            text += &format!("  note: {note}\n");
        }
        text.trim_end().to_owned()
    }
}

/// Returns the smallest and the largest finite value.
fn range(values: &[f32]) -> Option<[f32; 2]> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    finite
        .fold(None, |range, v| Some(range.map_or([v; 2], |[low, high]: [f32; 2]| [low.min(v), high.max(v)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_coasts_are_lines_around_the_globe() {
        let coasts = ::geometry::read(COASTS_NAME, COASTS).unwrap();
        let [low, high] = coasts.bounds().unwrap();
        assert!(coasts.lines.len() > 4_000 && coasts.is_flat, "{}", coasts.lines.len());
        assert!(low[0] <= -179.0 && high[0] >= 179.0 && low[1] < -60.0 && high[1] > 80.0, "{low:?} {high:?}");
    }
}
