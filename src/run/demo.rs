//! `corridor demo`

use array::Result;
use node::demo;
use serde_json::json;
use server::connections::Limits;

use crate::cli::DemoOptions;
use crate::common::{ServerPurpose, print, server, warn_of_port};

pub(crate) async fn run(options: &DemoOptions) -> Result<()> {
    let is_json = options.listening.json;
    let server = server(&[], &options.listening, ServerPurpose::Viewing)?;
    let mut demo = demo::start(&server).await?;
    demo.viewer = demo.viewer.with_limits(Limits::of_clients(options.listening.clients));
    if options.check {
        let seen = demo.check().await?;
        let text = if is_json {
            json!({"complete": true, "frames": seen.frames, "colours": seen.colors, "truth": seen.frame.fidelity}).to_string()
        } else {
            format!(
                "a complete picture of {} x {} pixels came after {} frames, with {} colors: {}",
                seen.frame.width, seen.frame.height, seen.frames, seen.colors, seen.frame.fidelity.text
            )
        };
        return print(&text);
    }
    if is_json {
        let page = demo.viewer.page();
        print(&json!({"url": page, "data_url": demo.data_url, "token": demo.viewer.token()}).to_string())?;
    } else {
        print(&format!("data server  {}\n\nopen  {}", demo.data_url, demo.viewer.page()))?;
    }
    warn_of_port(&demo.viewer);
    demo.run().await;
    Ok(())
}
