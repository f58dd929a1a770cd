//! `corridor view`

use std::sync::Arc;

use ::view::ViewRequest;
use array::{Error, Result};
use node::layers::LayeredOpener;
use node::view;
use server::connections::Limits;
use server::guests::{Guest, GuestRole, Guests};
use server::token::{Admission, Token};
use stream::{DrawDevice, RankChannels};

use crate::cli::session::GuestChoice;
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
    if let (Admission::Token(token), false) = (&server.admission, options.invites.is_empty()) {
        server.admission = Admission::TokenAndGuests(token.clone(), Arc::new(guests(&options.invites)?));
    }
    let device = if ranks.is_some() { DrawDevice::Cpu } else { device(options.drawing) };
    let node = match (layers(&options.layers)?, server.locations.first().cloned()) {
        (Some(layers), Some(location)) => {
            if ranks.is_some() {
                return Err(Error::unsupported(
                    "several ranks cannot draw layers: drop `--layer`, or start one process, without `mpirun`",
                ));
            }
            let array = first_view.map_or_else(String::new, |view| view.array);
            let (opener, view) = LayeredOpener::open(&location, array, &layers, &server.context).await?;
            view::start_by(&server, &opener, Some(view), device, None).await?
        }
        _ => view::start(&server, first_view, device, ranks).await?,
    };
    let invitations = node.invitations();
    if is_json {
        let mut line = viewer_line(&node);
        if !invitations.is_empty() {
            let links = invitations.into_iter().map(|(role, link)| (role.to_owned(), link.into())).collect();
            line["invitations"] = serde_json::Value::Object(links);
        }
        print(&line.to_string())?;
    } else {
        print(&format!("open  {}", node.page()))?;
        for (role, link) in invitations {
            print(&format!("{role}  {link}"))?;
        }
    }
    warn_of_port(&node);
    node.with_limits(Limits::of_clients(options.listening.clients)).run().await;
    Ok(())
}

/// Returns the requested layers; `None` if there are none.
fn layers(texts: &[String]) -> Result<Option<ViewRequest>> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut request = ViewRequest::default();
    request.set("layers", &texts.iter().map(String::as_str).collect())?;
    Ok(Some(request))
}

/// Returns one token for each role.
fn guests(choices: &[GuestChoice]) -> Result<Guests> {
    let roles = [(GuestChoice::Steer, GuestRole::Steer), (GuestChoice::Watch, GuestRole::Watch)];
    let chosen = roles.into_iter().filter(|(choice, _)| choices.contains(choice));
    let links: Result<_> = chosen.map(|(_, role)| Ok(Guest { token: Token::random()?, role })).collect();
    Ok(Guests::new(links?))
}
