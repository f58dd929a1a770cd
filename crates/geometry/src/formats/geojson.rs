//! GeoJSON (RFC 7946): points, lines and the outlines of polygons, with their properties as values and texts.

use array::{Error, Result};
use serde_json::Value;

use crate::json::{excerpt_of_json, parse_json};
use crate::model::excerpt;
use crate::{Geometry, GeometrySpace, VertexText};

/// Deepest nesting of collections.
const MAX_DEPTH: usize = 16;
/// Properties that are drawn as text at points, the first that a feature has.
const TEXT_PROPERTIES: [&str; 4] = ["label", "name", "NAME", "text"];

pub(crate) fn read(bytes: &[u8]) -> Result<Geometry> {
    let json = parse_json(bytes, "GeoJSON")?;
    let mut geometry = Geometry { space: GeometrySpace::Geographic, is_flat: true, ..Geometry::default() };
    add(&json, 0, &mut geometry)?;
    geometry.fill_values(geometry.positions.len())?;
    geometry.finished("GeoJSON")
}

fn add(object: &Value, depth: usize, geometry: &mut Geometry) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::too_large(format!(
            "expected at most {MAX_DEPTH} levels of GeoJSON collections, found more"
        )));
    }
    let coordinates = &object["coordinates"];
    match object["type"].as_str() {
        Some("FeatureCollection") => each(&object["features"], |feature| add(feature, depth + 1, geometry)),
        Some("GeometryCollection") => each(&object["geometries"], |part| add(part, depth + 1, geometry)),
        Some("Feature") => {
            let first = geometry.positions.len();
            if object["geometry"].is_object() {
                add(&object["geometry"], depth + 1, geometry)?;
            }
            describe(&object["properties"], first, geometry)
        }
        Some("Point") => add_point(coordinates, geometry),
        Some("MultiPoint") => each(coordinates, |point| add_point(point, geometry)),
        Some("LineString") => add_line(coordinates, geometry),
        Some("MultiLineString" | "Polygon") => each(coordinates, |line| add_line(line, geometry)),
        Some("MultiPolygon") => each(coordinates, |polygon| each(polygon, |ring| add_line(ring, geometry))),
        other => Err(Error::corrupt(format!(
            "expected a GeoJSON type such as `FeatureCollection`, found `{}`",
            excerpt(other.unwrap_or("none"))
        ))),
    }
}

fn each(list: &Value, mut add: impl FnMut(&Value) -> Result<()>) -> Result<()> {
    list.as_array().into_iter().flatten().try_for_each(&mut add)
}

fn position(coordinates: &Value, geometry: &mut Geometry) -> Result<[f64; 3]> {
    let at = |axis: usize| coordinates.get(axis).and_then(Value::as_f64);
    let (Some(x), Some(y)) = (at(0), at(1)) else {
        return Err(Error::corrupt(format!(
            "expected a position of two or three numbers in GeoJSON, found `{}`",
            excerpt_of_json(coordinates)
        )));
    };
    geometry.is_flat &= at(2).is_none();
    Ok([x, y, at(2).unwrap_or(0.0)])
}

fn add_point(coordinates: &Value, geometry: &mut Geometry) -> Result<()> {
    let position = position(coordinates, geometry)?;
    let vertex = geometry.add_vertex(position)?;
    geometry.points.push(vertex);
    Ok(())
}

fn add_line(coordinates: &Value, geometry: &mut Geometry) -> Result<()> {
    let first = geometry.positions.len();
    each(coordinates, |place| {
        let position = position(place, geometry)?;
        geometry.add_vertex(position).map(|_| ())
    })?;
    let last = geometry.positions.len();
    geometry.add_line((first..last).map(|at| u32::try_from(at).unwrap_or(u32::MAX)))
}

/// Gives the vertices of a feature the values of its properties, and its first vertex its text if it is a point.
#[expect(clippy::cast_possible_truncation, reason = "values by vertex are f32")]
fn describe(properties: &Value, first: usize, geometry: &mut Geometry) -> Result<()> {
    let vertices = geometry.positions.len();
    let Some(properties) = properties.as_object().filter(|_| first < vertices) else { return Ok(()) };
    let is_point = geometry.points.last().is_some_and(|&point| point as usize >= first);
    let text = TEXT_PROPERTIES.iter().find_map(|name| properties.get(*name)?.as_str());
    if let (Some(text), true, Ok(vertex)) = (text, is_point, u32::try_from(first)) {
        geometry.texts.push(VertexText { vertex, text: text.to_owned() });
    }
    for (name, value) in properties {
        let Some(value) = value.as_f64() else { continue };
        let Some(values) = geometry.values_entry(name, vertices)? else { continue };
        values.resize(first, f32::NAN);
        values.resize(vertices, value as f32);
    }
    Ok(())
}
