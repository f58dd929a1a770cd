//! Geometry layers of views: files of surfaces, lines, points and texts beside the data, fetched once and kept.

mod loaded;
mod place;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use array::{Dataset, Error, Result};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared, select_all};
use geometry::Geometry;
use render::{GeometryCut, Scene, SceneGeometry};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
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
/// Most geometries that are fetched and read at once, so that their files fit into memory; others wait.
const MAX_LOADING: usize = 4;
/// Time after which a geometry that could not be fetched is requested again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Geometry of a view, ready to be placed in pictures.
#[derive(Clone, Default)]
pub(crate) struct ViewGeometry {
    /// Layers with their numbers, which choose their colors.
    layers: Arc<[(usize, ViewLayer, Arc<LoadedGeometry>)]>,
}

impl ViewGeometry {
    /// Returns true without any layer to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns the number of layers to draw.
    pub(crate) fn count(&self) -> usize {
        self.layers.len()
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
        let layer = |(number, layer, loaded): &(usize, ViewLayer, Arc<LoadedGeometry>)| {
            loaded
                .layer(layer, *number, &placement)
                .map_err(|error| error.context(format!("draw the layer `{}`", layer.title())))
        };
        let layers = self.layers.iter().map(layer).collect::<Result<Vec<_>>>()?;
        Ok(SceneGeometry { layers: layers.into(), cut })
    }
}

/// Result of fetching and reading a geometry.
type GeometryResult = Result<Arc<LoadedGeometry>>;

/// Geometry that is being fetched and read, by a task of its own. It ends when nobody waits for it any more.
pub(crate) type ArrivingGeometry = Shared<BoxFuture<'static, GeometryResult>>;

/// Geometry of a view, as far as it is known now.
pub(crate) struct GeometryNow {
    /// Geometry that is there.
    pub(crate) geometry: ViewGeometry,
    /// Reasons for the layers that cannot be drawn.
    pub(crate) errors: Vec<Error>,
    /// Geometry that is still coming.
    pub(crate) arriving: Vec<ArrivingGeometry>,
}

/// Waits until one of some geometries has arrived; forever without any.
pub(crate) async fn any_arrives(arriving: Vec<ArrivingGeometry>) {
    if arriving.is_empty() {
        std::future::pending::<()>().await;
    }
    // Its result is taken from the cache.
    _ = select_all(arriving).await;
}

/// Geometry of a name.
struct KeptGeometry {
    name: String,
    state: KeptState,
}

enum KeptState {
    /// It is being read, as long as somebody waits for it.
    Arriving(WeakShared<BoxFuture<'static, GeometryResult>>),
    /// It was read, or cannot be.
    Read { result: GeometryResult, at: Instant },
}

impl KeptGeometry {
    fn size_bytes(&self) -> u64 {
        match &self.state {
            KeptState::Read { result: Ok(loaded), .. } => loaded.size_bytes(),
            _ => 0,
        }
    }
}

/// Answer of the cache to a name.
enum FoundGeometry {
    Read(GeometryResult),
    Arriving(ArrivingGeometry),
}

/// Cache of the geometry of a session.
pub(crate) struct GeometryCache {
    loader: Arc<GeometryLoader>,
    /// The most recently used one is last. Locked to look a name up, never while a geometry is fetched or read: one that
    /// does not arrive must not hold up the others.
    kept: Mutex<Vec<KeptGeometry>>,
}

impl GeometryCache {
    pub(crate) fn new(fetch: Option<GeometryFetch>, memory_bytes: u64) -> Self {
        let most_bytes = (memory_bytes / KEPT_SHARE).max(LEAST_KEPT_BYTES);
        let loader = GeometryLoader { fetch, most_bytes, turns: Semaphore::new(MAX_LOADING) };
        Self { loader: Arc::new(loader), kept: Mutex::default() }
    }

    /// Waits for the geometry of the layers of a view that are shown; returns it, and the reasons for those that cannot
    /// be drawn.
    ///
    /// # Cancel safety
    /// Safe: the next call fetches again.
    pub(crate) async fn of(&self, view: &View) -> (ViewGeometry, Vec<Error>) {
        // All of them are begun before the first is awaited.
        let found: Vec<_> =
            named(view).map(|(number, layer, name)| (number, layer, name, self.find(name))).collect();
        let (mut layers, mut errors) = (Vec::new(), Vec::new());
        for (number, layer, name, found) in found {
            let result = match found {
                FoundGeometry::Read(result) => result,
                FoundGeometry::Arriving(arriving) => {
                    let result = arriving.await;
                    self.keep(name, &result);
                    result
                }
            };
            match result {
                Ok(loaded) => layers.push((number, layer.clone(), loaded)),
                Err(error) => errors.push(error),
            }
        }
        (ViewGeometry { layers: layers.into() }, errors)
    }

    /// Returns the geometry of the layers of a view that are shown as far as it is there, and begins to fetch the rest. Call it
    /// within a tokio runtime.
    pub(crate) fn now(&self, view: &View) -> GeometryNow {
        let (mut layers, mut errors, mut arriving) = (Vec::new(), Vec::new(), Vec::new());
        for (number, layer, name) in named(view) {
            match self.find(name) {
                FoundGeometry::Read(Ok(loaded)) => layers.push((number, layer.clone(), loaded)),
                FoundGeometry::Read(Err(error)) => errors.push(error),
                FoundGeometry::Arriving(other) => arriving.push(other),
            }
        }
        GeometryNow { geometry: ViewGeometry { layers: layers.into() }, errors, arriving }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<KeptGeometry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks a name up, and begins to fetch it if it is not known, or could not be fetched some time ago.
    fn find(&self, name: &str) -> FoundGeometry {
        let mut kept = self.kept();
        let at = kept.iter().position(|known| known.name == name);
        let known = at.map(|at| kept.remove(at).state);
        let (state, found) = match known {
            Some(KeptState::Read { result, at }) if result.is_ok() || at.elapsed() < RETRY_AFTER => {
                (KeptState::Read { result: result.clone(), at }, FoundGeometry::Read(result))
            }
            Some(KeptState::Arriving(weak)) => match weak.upgrade() {
                Some(arriving) => match arriving.peek().cloned() {
                    Some(result) => read_now(result),
                    None => (KeptState::Arriving(weak), FoundGeometry::Arriving(arriving)),
                },
                None => self.begin(name),
            },
            _ => self.begin(name),
        };
        kept.push(KeptGeometry { name: name.to_owned(), state });
        self.make_room(&mut kept);
        found
    }

    fn begin(&self, name: &str) -> (KeptState, FoundGeometry) {
        let arriving = self.loader.begin(name);
        match arriving.downgrade() {
            Some(weak) => (KeptState::Arriving(weak), FoundGeometry::Arriving(arriving)),
            None => read_now(Err(Error::internal("a geometry was read before it was requested"))),
        }
    }

    /// Keeps what was awaited.
    fn keep(&self, name: &str, result: &GeometryResult) {
        let mut kept = self.kept();
        if let Some(known) = kept.iter_mut().find(|known| known.name == name)
            && matches!(known.state, KeptState::Arriving(_))
        {
            (known.state, _) = read_now(result.clone());
        }
        self.make_room(&mut kept);
    }

    /// Drops those that were used least recently beyond the limits.
    fn make_room(&self, kept: &mut Vec<KeptGeometry>) {
        let all_bytes = |kept: &[KeptGeometry]| kept.iter().map(KeptGeometry::size_bytes).sum::<u64>();
        while kept.len() > 1 && (kept.len() > MAX_KEPT || all_bytes(kept) > self.loader.most_bytes) {
            kept.remove(0);
        }
    }
}

fn read_now(result: GeometryResult) -> (KeptState, FoundGeometry) {
    (KeptState::Read { result: result.clone(), at: Instant::now() }, FoundGeometry::Read(result))
}

/// Returns the layers of geometry that a view shows, with their numbers among those and the names of their geometry.
fn named(view: &View) -> impl Iterator<Item = (usize, &ViewLayer, &str)> {
    let shown = view.layers.iter().filter(|layer| layer.is_shown());
    let named = shown.filter_map(|layer| Some((layer, layer.geometry.as_deref()?)));
    named.enumerate().map(|(number, (layer, name))| (number, layer, name))
}

/// Fetches and reads geometry.
struct GeometryLoader {
    fetch: Option<GeometryFetch>,
    most_bytes: u64,
    turns: Semaphore,
}

impl GeometryLoader {
    fn begin(self: &Arc<Self>, name: &str) -> ArrivingGeometry {
        let (loader, name) = (Arc::clone(self), name.to_owned());
        // It makes progress also while those who wait for it draw, and is aborted with the last of them.
        let mut task = JoinSet::new();
        task.spawn(async move { loader.load(name).await });
        let ended = async move {
            let ended = task.join_next().await.and_then(|ended| ended.ok());
            ended.unwrap_or_else(|| Err(Error::internal("reading a geometry ended unexpectedly")))
        };
        ended.boxed().shared()
    }

    async fn load(&self, name: String) -> GeometryResult {
        let fetch = self.fetch.as_ref().ok_or_else(|| {
            Error::unsupported(format!(
                "expected data with files beside them for the geometry `{name}`, found none"
            ))
        })?;
        let _turn =
            self.turns.acquire().await.map_err(|_| Error::internal("the turns of geometry have ended"))?;
        let bytes = fetch(name.clone())
            .await
            .map_err(|error| error.context(format!("fetch the geometry `{name}`")))?;
        let most_bytes = self.most_bytes;
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

    #[tokio::test]
    async fn a_geometry_that_does_not_arrive_does_not_hold_up_others_and_is_given_up_when_nobody_waits() {
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        let fetch: GeometryFetch = Arc::new(move |name: String| {
            let guard = OpenFetch::new(&counted);
            async move {
                if name.starts_with("stuck") {
                    std::future::pending::<()>().await;
                }
                drop(guard);
                Ok(Bytes::from_static(b"x,y,z\n1,2,3\n"))
            }
            .boxed()
        });
        let cache = GeometryCache::new(Some(fetch), 0);
        let both = view(&["stuck.csv", "a.csv"]);
        let GeometryNow { arriving, .. } = cache.now(&both);
        assert_eq!(arriving.len(), 2);
        // Another picture waits for the other one only.
        assert_eq!(cache.of(&view(&["a.csv"])).await.0.count(), 1);
        let now = cache.now(&both);
        assert_eq!((now.geometry.count(), now.arriving.len()), (1, 1));
        assert_eq!(now.geometry.layers[0].0, 1, "its color does not change when the first one arrives");
        assert_eq!(open.load(Ordering::Relaxed), 1);
        drop((arriving, now));
        while open.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(cache.now(&both).arriving.len(), 1, "it is fetched again");
    }

    /// Counts the fetches that have not ended.
    struct OpenFetch(Arc<AtomicUsize>);

    impl OpenFetch {
        fn new(open: &Arc<AtomicUsize>) -> Self {
            open.fetch_add(1, Ordering::Relaxed);
            Self(Arc::clone(open))
        }
    }

    impl Drop for OpenFetch {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
