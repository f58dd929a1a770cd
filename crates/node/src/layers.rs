//! Layers from other data sets: opens them beside the one that is drawn.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use array::{Dataset, Error, Meaning, Result};
use client::upstream::Upstream;
use client::url::Location;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use server::exports::Opener;
use server::stack::Stack;
use stream::{Beside, OtherDataset};
use view::{View, ViewRequest};

use crate::assemble::{Context, assemble};

/// Most names of arrays in the message about an unknown layer.
const MAX_NAMED: usize = 8;

/// Data set whose arrays are layers.
#[derive(Clone, Debug, PartialEq)]
struct LayerLocation {
    /// Location as the user wrote it.
    text: String,
    /// True if its values are labels, as the layer says.
    is_labels: bool,
}

/// Returns a stack with the data sets that the requested layers name by location beside its own, and replaces the
/// locations by the names of the arrays there. Layers that name an array of the data set stay as they are. With others
/// beside it, a data set has several arrays, so a request that names none gets the default one, unless a view
/// (`has_view`) chooses among several.
///
/// # Errors
/// `NotFound` for a layer that is neither an array nor a location; the errors of opening and of [`Beside::open`].
pub async fn with_layers(
    stack: Stack,
    request: &mut ViewRequest,
    has_view: bool,
    context: &Context,
) -> Result<Stack> {
    let Some(Value::Array(layers)) = request.get("layers").cloned() else { return Ok(stack) };
    let own = stack.source.describe().await?;
    let (stack, layers) = open_layers(stack, layers, context).await?;
    request.set("layers", &Value::Array(layers))?;
    if request.get("array").is_none() && (own.arrays.len() == 1 || !has_view) {
        request.set("array", &default_array(&own)?.into())?;
    }
    Ok(stack)
}

/// Returns the name of the array that is drawn where none is named.
fn default_array(dataset: &Dataset) -> Result<String> {
    View::first_of(dataset).map(|view| view.array)
}

async fn open_layers(stack: Stack, layers: Vec<Value>, context: &Context) -> Result<(Stack, Vec<Value>)> {
    let dataset = stack.source.describe().await?;
    let is_elsewhere = |layer: &Value| {
        let array = layer.get("array").and_then(Value::as_str)?;
        let is_labels = layer.get("labels").is_some_and(Value::is_string);
        dataset.find(array).is_err().then(|| LayerLocation { text: array.to_owned(), is_labels })
    };
    let mut locations: Vec<LayerLocation> = Vec::new();
    for location in layers.iter().filter_map(is_elsewhere) {
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
    if locations.is_empty() {
        return Ok((stack, layers));
    }
    let names: Vec<String> = dataset.arrays.iter().take(MAX_NAMED).map(|a| format!("`{}`", a.name)).collect();
    let mut others = Vec::with_capacity(locations.len());
    for location in &locations {
        let own = context.share_of(locations.len() + 1);
        let opened = open_other(location, &own).await;
        others.push(opened.map_err(|error| {
            error.context(format!(
                "expected one of the arrays {} or the location of a data set as a layer, found `{}`",
                names.join(", "),
                location.text
            ))
        })?);
    }
    let beside = Beside::open(Arc::clone(&stack.source), others).await?;
    let main_names = beside.main_names();
    let renamed = |mut layer: Value| {
        let place = is_elsewhere(&layer).and_then(|own| locations.iter().position(|other| *other == own));
        if let Some(name) = place.and_then(|place| main_names.get(place)) {
            layer["array"] = name.as_str().into();
        }
        layer
    };
    let layers = layers.into_iter().map(renamed).collect();
    // Servers know the arrays of their own data sets only, so what concerns all is computed here.
    Ok((Stack { source: Arc::new(beside), upstream: Upstream::Here, ..stack }, layers))
}

async fn open_other(location: &LayerLocation, context: &Context) -> Result<OtherDataset> {
    let (place, array) = location.text.parse::<Location>()?.split_array();
    let is_local = matches!(place, Location::Path(_) | Location::Synthetic(_));
    let meaning = (location.is_labels && is_local).then_some(Meaning::Labels);
    let stack = assemble(&place, &context.clone().meaning(meaning)).await?;
    let array = if array.is_empty() { stack.array.clone() } else { array };
    Ok(OtherDataset { name: stem(&stack.name), array, source: stack.source })
}

/// Returns a name without the endings of files.
fn stem(name: &str) -> String {
    let mut stem = name;
    for ending in [".gz", ".zip", ".bz2"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    if stem.is_empty() { name.to_owned() } else { stem.to_owned() }
}

/// Opener of a data set with others beside it, for a viewing node.
pub struct LayeredOpener {
    inner: Arc<OpenerState>,
}

struct OpenerState {
    context: Context,
    /// Layers as requested.
    layers: Vec<Value>,
    /// Stack that was opened to find the names of the layers.
    first: Mutex<Option<Stack>>,
}

impl LayeredOpener {
    /// Opens a location with the requested layers; returns the opener, and the first view: of `array`, or of the
    /// default array if it is empty.
    ///
    /// # Errors
    /// Those of [`assemble`] and [`with_layers`].
    pub async fn open(
        location: &Location,
        array: String,
        request: &ViewRequest,
        context: &Context,
    ) -> Result<(Self, View)> {
        let layers = match request.get("layers") {
            Some(Value::Array(layers)) => layers.clone(),
            _ => Vec::new(),
        };
        let stack = assemble(location, context).await?;
        let own = stack.source.describe().await?;
        let named = if array.is_empty() { stack.array.clone() } else { array };
        let array = if named.is_empty() { default_array(&own)? } else { named };
        let (stack, named) = open_layers(stack, layers.clone(), context).await?;
        let first = Mutex::new(Some(stack));
        let opener = Self { inner: Arc::new(OpenerState { context: context.clone(), layers, first }) };
        Ok((opener, first_view(array, named)?))
    }
}

impl Opener for LayeredOpener {
    fn open(&self, location: Location, meaning: Option<Meaning>) -> BoxFuture<'static, Result<Stack>> {
        let inner = Arc::clone(&self.inner);
        async move {
            let first = inner.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(stack) = first.filter(|_| meaning == inner.context.meaning) {
                return Ok(stack);
            }
            let context = inner.context.clone().meaning(meaning);
            let stack = assemble(&location, &context).await?;
            open_layers(stack, inner.layers.clone(), &inner.context).await.map(|(stack, _)| stack)
        }
        .boxed()
    }

    fn default_meaning(&self) -> Option<Meaning> {
        self.inner.context.meaning
    }

    fn asks_again_after(&self) -> Duration {
        self.inner.context.ask_again_after
    }

    fn for_one_of(&self, _count: usize) -> Arc<dyn Opener> {
        Arc::new(Self { inner: Arc::clone(&self.inner) })
    }

    fn for_folder(&self, folder: PathBuf) -> Arc<dyn Opener> {
        self.inner.context.for_folder(folder)
    }
}

/// Returns the view of an array with layers.
fn first_view(array: String, layers: Vec<Value>) -> Result<View> {
    let mut fields = Map::new();
    fields.insert("array".into(), array.into());
    fields.insert("layers".into(), layers.into());
    View::default().merged(&fields).map_err(|e: Error| e.context("layers"))
}

#[cfg(test)]
mod tests {
    use client::directories::UserDirectories;
    use serde_json::json;

    use super::*;
    use crate::memory::MemoryBudget;

    fn context(folder: &std::path::Path) -> Context {
        let directories = UserDirectories::below(folder);
        Context::new(directories, MemoryBudget::viewing(256 << 20), None)
    }

    #[test]
    fn names_of_layers_have_no_endings() {
        for (name, expected) in [("seg.nii.gz", "seg"), ("a.b.nrrd", "a.b"), ("pet", "pet"), (".nii", ".nii")]
        {
            assert_eq!(stem(name), expected);
        }
    }

    #[tokio::test]
    async fn locations_become_names_of_arrays_beside_the_own_ones() {
        let folder = tempfile::tempdir().unwrap();
        let context = context(folder.path());
        let own = "synthetic:waves?shape=8,8,8&dtype=u8".parse().unwrap();
        let stack = assemble(&own, &context).await.unwrap();
        let mut request = ViewRequest::default();
        let other = "synthetic:waves?shape=4,4,4&dtype=u8";
        request.set("layers", &json!([{"array": other, "opacity": 0.5}, {"array": other}])).unwrap();
        let stack = with_layers(stack, &mut request, false, &context).await.unwrap();
        let dataset = stack.source.describe().await.unwrap();
        let name = request.get("layers").unwrap()[0]["array"].as_str().unwrap();
        assert_eq!(dataset.find(name).unwrap().1.shape(), [4, 4, 4]);
        assert_eq!(request.text("array"), Some("waves"), "the own array stays the default");
        assert_eq!(request.get("layers").unwrap()[1]["array"], name, "opened once");
        let mut wrong = ViewRequest::default();
        wrong.set("layers", &json!(["nowhere.nii"])).unwrap();
        let error = with_layers(stack, &mut wrong, false, &context).await.err().unwrap().to_string();
        assert!(error.contains("as a layer, found `nowhere.nii`"), "{error}");
    }
}
