//! Viewing nodes of this process: one for each data set that is viewed, on loopback, with a token.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use array::{Error, ErrorKind, Meaning, Result};
use client::url::Location;
use futures::future::{BoxFuture, FutureExt};
use node::assemble::{Context, assemble, stack_of};
use node::memory::{MemoryBudget, parse_size};
use node::node::{Listen, ServerOptions};
use node::relay::Relays;
use node::view::start_by;
use pyo3::prelude::*;
use server::exports::Opener;
use server::http::{assets, colormaps};
use server::identity::IdentityChoice;
use server::public_address::ReverseProxy;
use server::stack::Stack;
use server::token::{Admission, Token};
use tokio::task::JoinHandle;
use view::View;

use crate::connection::{Connection, meaning_of};
use crate::errors::raise;
use crate::picture::device_named;
use crate::relay::PageRelay;
use crate::runtime::{runtime, wait};

/// Longest wait for the end of a server that was closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the viewed data: at first what is open already. A file is opened again when it has changed.
#[derive(Clone)]
struct ViewOpener {
    opened: Stack,
    /// Context with the memory of the viewing node.
    context: Context,
    meaning: Option<Meaning>,
    has_begun: Arc<AtomicBool>,
}

impl Opener for ViewOpener {
    fn open(&self, location: Location, meaning: Option<Meaning>) -> BoxFuture<'static, Result<Stack>> {
        let is_open =
            matches!(location, Location::Synthetic(_)) || !self.has_begun.swap(true, Ordering::Relaxed);
        if !is_open {
            let context = self.context.clone().meaning(meaning);
            return async move { assemble(&location, &context).await }.boxed();
        }
        let (opened, context) = (self.opened.clone(), self.context.clone());
        async move {
            let Stack { name, source, work, array, upstream, geometry, .. } = opened;
            Ok(Stack { work, array, geometry, ..stack_of(name, source, upstream, &context) })
        }
        .boxed()
    }

    fn default_meaning(&self) -> Option<Meaning> {
        self.meaning
    }

    fn asks_again_after(&self) -> Duration {
        self.context.ask_again_after
    }

    fn for_one_of(&self, _count: usize) -> Arc<dyn Opener> {
        Arc::new(self.clone())
    }

    fn for_folder(&self, _folder: std::path::PathBuf) -> Arc<dyn Opener> {
        Arc::new(self.clone())
    }
}

/// A viewing node on loopback.
#[pyclass(frozen, weakref, module = "corridor._native")]
pub(crate) struct ViewServer {
    page: String,
    token: String,
    relays: Relays,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Starts a viewing node for an open data set. `path` is the file it was opened from, if that is on this machine and is to
/// be followed; `meaning` is the one that it was opened with; `view` is the first view, JSON; `memory` is a size such as
/// `1GiB`; `address` is the port, 0 for any, and the address that a proxy gives it, if there is one.
#[pyfunction]
#[pyo3(signature = (connection, path, meaning, view, memory, device, address=(0, None)))]
#[expect(clippy::needless_pass_by_value, reason = "made for this call")]
#[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
pub(crate) fn serve_view(
    py: Python<'_>,
    connection: &Connection,
    path: Option<String>,
    meaning: Option<String>,
    view: &str,
    memory: &str,
    device: &str,
    address: (u16, Option<String>),
) -> PyResult<ViewServer> {
    let (port, public) = address;
    let (opened, context) = connection.opened();
    let prepare = || {
        let budget = MemoryBudget::viewing(parse_size(memory)?);
        let meaning = meaning.as_deref().map(meaning_of).transpose()?;
        let context = context.within(budget).meaning(meaning);
        let location =
            path.map_or_else(|| Location::Synthetic(opened.name.clone()), |p| Location::Path(p.into()));
        let options = ServerOptions {
            locations: vec![location],
            explores_folders: false,
            listen: Listen::Loopback(port),
            admission: Admission::Token(Token::random()?),
            identity: IdentityChoice::Own,
            names: Vec::new(),
            proxies: ReverseProxy::new(public.as_slice(), &[])?,
            context: context.clone(),
            peers: Vec::new(),
            waiting_clients: Vec::new(),
            most_bytes_per_sec: None,
        };
        let opener = ViewOpener { opened, context, meaning, has_begun: Arc::default() };
        Ok::<_, Error>((options, opener, View::parse(view)?, device_named(device)?))
    };
    let (options, opener, view, device) = prepare().map_err(|e| raise(py, &e))?;
    wait(py, async move {
        let node = start_by(&options, &opener, Some(view), device, None).await?;
        if node.taken_port.is_some() {
            let text = format!("another program took port {port} of the proxy's address; try again");
            return Err(Error::new(ErrorKind::Busy, text));
        }
        let (page, token) = (node.page(), node.token().unwrap_or_default().to_owned());
        let (node, relays) = node.accepting_relays();
        let task = Mutex::new(Some(runtime()?.spawn(node.run())));
        Ok(ViewServer { page, token, relays, task })
    })
}

#[pymethods]
impl ViewServer {
    /// Link of the page, with the token.
    #[getter]
    fn page(&self) -> &str {
        &self.page
    }

    /// Token that the page presents.
    #[getter]
    fn token(&self) -> &str {
        &self.token
    }

    /// Connects a page whose messages Python moves; see [`PageRelay`].
    fn connect(
        &self,
        py: Python<'_>,
        on_message: Py<PyAny>,
        on_taken: Py<PyAny>,
        window_bytes: usize,
    ) -> PyResult<PageRelay> {
        PageRelay::connect(self.relays.clone(), on_message, on_taken, window_bytes).map_err(|e| raise(py, &e))
    }

    /// Ends the node and its connections; waits until they have ended.
    fn close(&self, py: Python<'_>) {
        let Some(task) = self.take() else { return };
        let Ok(runtime) = runtime() else { return };
        // A cancelled task ends with an error.
        py.detach(|| drop(runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, task).await })));
    }
}

impl ViewServer {
    fn take(&self) -> Option<JoinHandle<()>> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        task.inspect(JoinHandle::abort)
    }
}

impl Drop for ViewServer {
    fn drop(&mut self) {
        self.take();
    }
}

/// Returns the viewer's page as one document; `None` if it was not built in.
#[pyfunction]
pub(crate) fn viewer_page() -> Option<String> {
    assets::single_document()
}

/// Returns the color maps for the viewer's page, JSON.
#[pyfunction]
pub(crate) fn viewer_colormaps() -> String {
    colormaps::json()
}
