//! `corridor view`

use array::{Error, Result};
use node::view;
use server::connections::Limits;
use stream::{DrawDevice, RankChannels};

use crate::cli::{self, CutChoice, ViewCommandOptions};
use crate::common::{ServerPurpose, device, print, server, viewer_line, warn_of_port};

/// Runs the command. `ranks` are the processes of an MPI program that draw together, including this one.
pub(crate) async fn run(options: &ViewCommandOptions, ranks: Option<RankChannels>) -> Result<()> {
    if matches!(options.cut, CutChoice::Data | CutChoice::Slabs) {
        return Err(Error::unsupported("this version supports only `--cut pixels`; omit the option"));
    }
    if options.drawing.device == cli::DeviceChoice::Gpu && ranks.is_some() {
        return Err(Error::unsupported("expected `--device cpu` or `auto` for several ranks, found `gpu`"));
    }
    let is_json = options.listening.json;
    let assisting = ranks.clone().filter(|ranks| ranks.work.rank() > 0);
    let purpose = if assisting.is_some() { ServerPurpose::Assisting } else { ServerPurpose::Viewing };
    let mut server = server(std::slice::from_ref(&options.location), &options.listening, purpose)?;
    let mut first_view = None;
    if let Some(location) = server.locations.pop() {
        let (location, array) = location.split_array();
        server.locations.push(location);
        first_view = (!array.is_empty()).then(|| ::view::View { array, ..::view::View::default() });
    }
    if let Some(ranks) = assisting {
        return view::assist(&server, ranks).await;
    }
    let device = if ranks.is_some() { DrawDevice::Cpu } else { device(options.drawing) };
    let node = view::start(&server, first_view, device, ranks).await?;
    if is_json {
        print(&viewer_line(&node).to_string())?;
    } else {
        print(&format!("open  {}", node.page()))?;
    }
    warn_of_port(&node);
    node.with_limits(Limits::of_clients(options.listening.clients)).run().await;
    Ok(())
}
