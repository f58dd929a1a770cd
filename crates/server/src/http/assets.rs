//! The viewer's page, embedded in the binary. If it was not built (web/dist is missing), a page explains how to build
//! it.

use std::borrow::Cow;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// One file of the page.
pub(crate) struct Asset {
    /// Content.
    pub(crate) bytes: Cow<'static, [u8]>,
    /// Media type.
    pub(crate) media_type: &'static str,
    /// Whether its name contains a hash of its content, so that it may be cached without end.
    pub(crate) is_immutable: bool,
}

/// Page if the viewer was not built in.
const NOT_BUILT: &str = "<!doctype html><meta charset=utf-8><title>Corridor</title>\
<h1>The viewer is not part of this build</h1>\
<p>Run <code>make web</code> in the source tree, then build <code>corridor</code> again.\
<p>Data are served nevertheless: <code>corridor info</code>, <code>corridor get</code>, <code>corridor render</code>.";

/// Page of a server that does not render pictures.
const DATA_ONLY: &str = "<!doctype html><meta charset=utf-8><title>Corridor</title>\
<h1>Data are served here, not pictures</h1>\
<p>See them with <code>corridor view</code> and the <code>corridor://</code> link that the server printed, on your own machine: \
it opens a viewer in this browser.\
<p>Programs read them as Zarr at <code>/zarr/</code>, with the token.";

/// Returns the page of a server that does not render pictures, at a URL path; `None` for any path but `/`.
pub(crate) fn data_only(path: &str) -> Option<Asset> {
    (path == "/").then(|| html(DATA_ONLY))
}

fn html(text: &'static str) -> Asset {
    Asset {
        bytes: Cow::Borrowed(text.as_bytes()),
        media_type: "text/html; charset=utf-8",
        is_immutable: false,
    }
}

/// Returns a page with the reason that a request was refused.
pub(crate) fn refusal(why: &str) -> String {
    let escaped: String = why
        .chars()
        .map(|c| match c {
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '&' => "&amp;".to_owned(),
            c => c.to_string(),
        })
        .collect();
    let mut words = String::new();
    for (number, part) in escaped.split('`').enumerate() {
        words.push_str(if number == 0 {
            ""
        } else if number % 2 == 1 {
            "<code>"
        } else {
            "</code>"
        });
        words.push_str(part);
    }
    let mut first = words.chars();
    let words = first.next().map_or_else(String::new, |c| c.to_uppercase().chain(first).collect());
    format!(
        "<!doctype html><meta charset=utf-8><title>Corridor</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:45em;margin:3em auto;padding:0 1em}}code{{background:#8882}}</style>\
         <h1>This address does not lead to the viewer</h1><p>{words}.<p>Set-ups with nginx, Caddy, Apache and JupyterHub are in \
         <code>docs/deploy.md</code>."
    )
}

/// Returns the file at a URL path (`/`, `/assets/x.js`).
pub(crate) fn find(path: &str) -> Option<Asset> {
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    match Dist::get(name) {
        Some(file) => Some(Asset {
            bytes: file.data,
            media_type: media_type(name),
            is_immutable: name.starts_with("assets/"),
        }),
        None if name == "index.html" => Some(html(NOT_BUILT)),
        None => None,
    }
}

/// Returns the page as one document, with its styles and its script inside: for programs that show it in a frame. `None`
/// if the viewer was not built in.
#[must_use]
pub fn single_document() -> Option<String> {
    let page = String::from_utf8(Dist::get("index.html")?.data.into_owned()).ok()?;
    let text = |path: &str| {
        let file = Dist::get(path.trim_start_matches("./"))?;
        String::from_utf8(file.data.into_owned()).ok()
    };
    let mut rest = page.as_str();
    let mut document = String::with_capacity(1 << 20);
    // The tags with addresses are those that Vite writes, each as a whole.
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        document.push_str(before);
        let end = tag.find('>').map_or(tag.len(), |end| end + 1);
        let (tag, after) = tag.split_at(end);
        rest = after;
        if let Some(path) = attribute(tag, "<script", "src") {
            // A script ends at the first end tag, also within a text, and a comment of HTML would hide that tag.
            let script = text(path)?.replace("</script", "<\\/script").replace("<!--", "<\\!--");
            document.push_str(&format!("<script type=\"module\">{script}"));
        } else if tag.contains("rel=\"stylesheet\"") {
            let style = text(attribute(tag, "<link", "href")?)?;
            document.push_str(&format!("<style>{style}</style>"));
        } else if attribute(tag, "<link", "href").is_none() {
            document.push_str(tag);
        }
    }
    document.push_str(rest);
    Some(document)
}

/// Returns an attribute of a tag that begins with `start`.
fn attribute<'a>(tag: &'a str, start: &str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.strip_prefix(start)?.split_once(&format!(" {name}=\""))?;
    value.split_once('"').map(|(value, _)| value)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_holds_styles_and_script() {
        // Without it, as when the viewer was not built, there is nothing to test.
        let Some(page) = single_document() else { return };
        assert_eq!(page.matches("<script type=\"module\">").count(), 1);
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(page.contains("<style>") && page.contains("id=\"picture\""));
        assert!(!page.contains("src=\"./") && !page.contains("href=\"./"));
    }

    #[test]
    fn a_page_is_always_found_and_nothing_outside_the_folder() {
        assert!(find("/").unwrap().media_type.starts_with("text/html"));
        for path in ["/../Cargo.toml", "/nothing", "/..%2fCargo.toml", "//etc/passwd"] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
