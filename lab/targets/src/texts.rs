//! Texts that people type: selections, URLs, synthetic fields.

use array::Indexing;
use client::url::{Location, Url};
use export::selection_text::ArraySelection;

/// Shapes on which selections are resolved.
const SHAPES: [&[u64]; 4] = [&[], &[5], &[3, 4, 7], &[1 << 62, 0, 2]];

/// Parses `text` as a selection, a pick and a location.
pub fn parse(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(indexing) = Indexing::parse(text) {
        resolve(&indexing);
    }
    if let Ok(selection) = ArraySelection::parse(text) {
        resolve(&selection.indexing);
    }
    drop(ArraySelection::parse_lines(text));
    match text.parse() {
        Ok(Location::Remote(url)) => check_url(&url),
        Ok(Location::Ssh(address)) => {
            assert_eq!(address.to_string().parse().as_ref(), Ok(&address));
            // They become arguments of a program: no options of it, and nothing that a shell interprets.
            for name in address.user.iter().chain([&address.host]) {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-+@:".contains(&b);
                assert!(!name.starts_with('-') && name.bytes().all(plain), "{name}");
            }
        }
        Ok(Location::Awaited(address)) => assert_eq!(address.to_string().parse().as_ref(), Ok(&address)),
        Ok(Location::Synthetic(name)) => crate::files::read_location(&name),
        Ok(location @ Location::Path(_)) => drop(location.split_array()),
        Err(_) => {}
    }
}

/// Checks that each selection that resolves lies within the shape.
fn resolve(indexing: &Indexing) {
    for shape in SHAPES {
        let Ok(resolved) = indexing.resolve(shape) else { continue };
        resolved.selection.check(shape).expect("what resolves lies within the shape");
        assert!(resolved.shape().len() <= shape.len() && resolved.reversed.len() == shape.len());
    }
}

/// Checks that a URL that was read can be written and read again, and that it names the same data
/// without secrets.
fn check_url(url: &Url) {
    assert_eq!(url.to_string().parse().as_ref(), Ok(url));
    let public: Url = url.public().parse().expect("what was written can be read");
    assert_eq!((&public.host, public.port, &public.dataset), (&url.host, url.port, &url.dataset));
    assert!(public.token.is_none() && public.fingerprint.is_none());
}
