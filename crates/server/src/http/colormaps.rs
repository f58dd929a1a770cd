//! The renderer's color maps in the form that the viewer's page reads: an object of names, each with the base64 of 256
//! RGB triples.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns the JSON text, in the order of the menu.
#[must_use]
pub fn json() -> String {
    let entry = |name: &&str| {
        let table = render::color_map_table(name)?;
        Some(format!("\"{name}\":\"{}\"", STANDARD.encode(table.as_flattened())))
    };
    let entries: Vec<String> = render::color_map_names().iter().filter_map(entry).collect();
    format!("{{{}}}", entries.join(","))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_map_has_256_colors() {
        let maps: serde_json::Value = serde_json::from_str(&super::json()).unwrap();
        let maps = maps.as_object().unwrap();
        assert_eq!(maps.len(), render::color_map_names().len());
        assert!(maps.values().all(|v| v.as_str().unwrap().len() == 1024));
    }
}
