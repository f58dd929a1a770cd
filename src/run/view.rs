//! `corridor view`

use node::array::{Error, Result};
use node::lobby::Limits;
use node::session;
use node::view;

use crate::cli::{Cut, View};
use crate::common::{device, print, server, viewer_line, warn_of_port};

pub(crate) async fn run(options: &View) -> Result<()> {
    if matches!(options.cut, Cut::Data | Cut::Slabs) {
        return Err(Error::unsupported("this version cuts the path at `pixels` only; leave `--cut` out"));
    }
    let is_json = options.listening.json;
    let mut server = server(std::slice::from_ref(&options.location), &options.listening, true)?;
    let mut first_view = None;
    if let Some(location) = server.locations.pop() {
        let (location, array) = location.split_array();
        server.locations.push(location);
        first_view = (!array.is_empty()).then(|| session::View { array, ..session::View::default() });
    }
    let node = view::start(&server, first_view, device(options.drawing)).await?;
    if is_json {
        print(&viewer_line(&node).to_string())?;
    } else {
        print(&format!("open  {}", node.page()))?;
    }
    warn_of_port(&node);
    node.with_limits(Limits::of_clients(options.listening.clients)).run().await;
    Ok(())
}
