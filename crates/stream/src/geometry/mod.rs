//! Geometry layers of views: files of surfaces, lines, points and texts beside the data, fetched once and kept.

mod loaded;
mod place;

use std::sync::Arc;
use std::time::Duration;

use array::{Dataset, Error, Result};
use bytes::Bytes;
use futures::future::BoxFuture;
use geometry::Geometry;
use render::{GeometryCut, Scene, SceneGeometry};
use tokio::time::Instant;
use view::{View, ViewLayer};

use crate::geometry::loaded::LoadedGeometry;
use crate::geometry::place::Placement;
use crate::tasks::blocking;

/// Fetches the bytes of a geometry by the name that a view has for it.
pub type GeometryFetch = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Bytes>> + Send + Sync>;

/// Part of the memory for blocks that geometry may use in addition, at least [`LEAST_KEPT_BYTES`].
const KEPT_SHARE: u64 = 4;
/// Geometry that is kept in any case, bytes: a surface of a million triangles.
const LEAST_KEPT_BYTES: u64 = 64 << 20;
/// Most geometries that are kept, those that cannot be read included; the one used least recently is dropped.
const MAX_KEPT: usize = 32;
/// Time after which a geometry that could not be fetched is requested again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Geometry of a view, ready to be placed in pictures.
#[derive(Clone, Default)]
pub(crate) struct ViewGeometry {
    layers: Arc<[(ViewLayer, Arc<LoadedGeometry>)]>,
}

impl ViewGeometry {
    /// Returns true without any layer to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns the geometry for the picture of a scene of an array.
    ///
    /// # Errors
    /// `NotFound` for values by vertex that a geometry does not have; those of transfer functions.
    pub(crate) fn for_scene(&self, scene: &Scene, dataset: &Dataset, array: u32) -> Result<SceneGeometry> {
        if self.is_empty() {
            return Ok(SceneGeometry::default());
        }
        let slices = scene.portion().slices.unwrap_or_default();
        let cut = GeometryCut::of_picture(&scene.view, &slices, &scene.camera);
        let placement = Placement::of(scene, dataset.array(array)?, cut);
        let layer = |(number, (layer, loaded)): (usize, &(ViewLayer, Arc<LoadedGeometry>))| {
            loaded
                .layer(layer, number, &placement)
                .map_err(|error| error.context(format!("draw the layer `{}`", layer.title())))
        };
        let layers = self.layers.iter().enumerate().map(layer).collect::<Result<Vec<_>>>()?;
        Ok(SceneGeometry { layers: layers.into(), cut })
    }
}

/// Geometry that was read, or the reason that it cannot be.
struct KeptGeometry {
    name: String,
    loaded: Result<Arc<LoadedGeometry>>,
    tried_at: Instant,
}

/// Cache of the geometry of a session.
pub(crate) struct GeometryCache {
    fetch: Option<GeometryFetch>,
    most_bytes: u64,
    /// The most recently used one is last. Locked during a fetch, so that each is fetched once.
    kept: tokio::sync::Mutex<Vec<KeptGeometry>>,
}

impl GeometryCache {
    pub(crate) fn new(fetch: Option<GeometryFetch>, memory_bytes: u64) -> Self {
        let most_bytes = (memory_bytes / KEPT_SHARE).max(LEAST_KEPT_BYTES);
        Self { fetch, most_bytes, kept: tokio::sync::Mutex::default() }
    }

    /// Returns the geometry of the layers of a view that are shown, and the reasons for those that cannot be drawn.
    ///
    /// # Cancel safety
    /// Safe: the next call fetches again.
    pub(crate) async fn of(&self, view: &View) -> (ViewGeometry, Vec<Error>) {
        let (mut layers, mut errors) = (Vec::new(), Vec::new());
        for layer in view.layers.iter().filter(|layer| layer.is_shown()) {
            let Some(name) = &layer.geometry else { continue };
            match self.loaded(name).await {
                Ok(loaded) => layers.push((layer.clone(), loaded)),
                Err(error) => errors.push(error),
            }
        }
        (ViewGeometry { layers: layers.into() }, errors)
    }

    async fn loaded(&self, name: &str) -> Result<Arc<LoadedGeometry>> {
        let mut kept = self.kept.lock().await;
        if let Some(at) = kept.iter().position(|known| known.name == name) {
            let known = kept.remove(at);
            if known.loaded.is_ok() || known.tried_at.elapsed() < RETRY_AFTER {
                let loaded = known.loaded.clone();
                kept.push(known);
                return loaded;
            }
        }
        let loaded = self.load(name).await;
        kept.push(KeptGeometry { name: name.to_owned(), loaded: loaded.clone(), tried_at: Instant::now() });
        let size = |known: &KeptGeometry| known.loaded.as_ref().map_or(0, |loaded| loaded.size_bytes());
        while kept.len() > 1
            && (kept.len() > MAX_KEPT || kept.iter().map(size).sum::<u64>() > self.most_bytes)
        {
            kept.remove(0);
        }
        loaded
    }

    async fn load(&self, name: &str) -> Result<Arc<LoadedGeometry>> {
        let fetch = self.fetch.as_ref().ok_or_else(|| {
            Error::unsupported(format!(
                "expected data with files beside them for the geometry `{name}`, found none"
            ))
        })?;
        let bytes = fetch(name.to_owned())
            .await
            .map_err(|error| error.context(format!("fetch the geometry `{name}`")))?;
        let (name, most_bytes) = (name.to_owned(), self.most_bytes);
        let read = move || {
            let geometry: Geometry = geometry::read(&name, &bytes)?;
            let loaded = LoadedGeometry::new(geometry);
            if loaded.size_bytes() > most_bytes {
                return Err(Error::too_large(format!(
                    "the geometry `{name}` needs {} bytes of memory, and {most_bytes} are allowed: use a larger `--memory`",
                    loaded.size_bytes()
                )));
            }
            Ok(Arc::new(loaded))
        };
        blocking(read).await?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use serde_json::json;

    use super::*;

    fn view(names: &[&str]) -> View {
        let layers: Vec<_> = names.iter().map(|name| json!({ "geometry": name })).collect();
        View::parse(&json!({ "layers": layers }).to_string()).unwrap()
    }

    #[tokio::test]
    async fn geometry_is_fetched_once_and_a_layer_that_fails_leaves_the_others() {
        let fetched = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&fetched);
        let fetch: GeometryFetch = Arc::new(move |name: String| {
            counted.fetch_add(1, Ordering::Relaxed);
            let text: &'static [u8] = if name == "a.csv" { b"x,y,z\n1,2,3\n" } else { b"no table" };
            async move { Ok(Bytes::from_static(text)) }.boxed()
        });
        let cache = GeometryCache::new(Some(fetch), 0);
        for _ in 0..3 {
            let (geometry, errors) = cache.of(&view(&["a.csv", "b.csv"])).await;
            assert_eq!((geometry.layers.len(), errors.len()), (1, 1));
            assert!(errors[0].to_string().contains("`b.csv`"), "{}", errors[0]);
        }
        assert_eq!(fetched.load(Ordering::Relaxed), 2);
        let (geometry, errors) = GeometryCache::new(None, 0).of(&view(&["a.csv"])).await;
        assert!(geometry.is_empty() && errors.len() == 1);
    }
}
