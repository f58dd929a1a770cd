//! Records, unions and choices among the types of the fields.

use crate::fields::bounds::{
    MAX_FOV_RAD, MAX_LAYER_SIZE_PIXELS, MAX_WORLD, MIN_FOV_RAD, MIN_LAYER_SIZE_PIXELS,
};
use crate::fields::field::{
    ChoiceName, FieldChoice, FieldMember, FieldRecord, FieldType, FieldUnion, NumberRange,
};
use crate::layout::MAX_GRID_SIDE;
use crate::transfer::MAX_OPACITY_POINTS;

pub(super) const LAYOUT: FieldChoice = FieldChoice {
    name: "Layout",
    list: "LAYOUTS",
    help: "Arrangement of the pictures in the viewer.",
    names: &[
        ChoiceName { name: "space", alias: None, help: "One three-dimensional picture." },
        ChoiceName { name: "image", alias: None, help: "One plane, seen head on with parallel rays." },
        ChoiceName {
            name: "planes",
            alias: None,
            help: "Three orthogonal planes and a three-dimensional picture, linked by a crosshair.",
        },
    ],
};

pub(super) const GRID: FieldRecord = FieldRecord {
    name: "Grid",
    help: "Grid of pictures of one data set; the first cell shows the view itself.",
    members: &[
        FieldMember {
            name: "rows",
            former: None,
            field_type: FieldType::Index { last: Some(MAX_GRID_SIDE as u64) },
            is_optional: false,
            help: "Number of rows, from 1.",
        },
        FieldMember {
            name: "columns",
            former: None,
            field_type: FieldType::Index { last: Some(MAX_GRID_SIDE as u64) },
            is_optional: false,
            help: "Number of columns, from 1.",
        },
        FieldMember {
            name: "tied",
            former: None,
            field_type: FieldType::Flag,
            is_optional: true,
            help: "True (the default) if all cells have the camera of the view.",
        },
        FieldMember {
            name: "cells",
            former: None,
            field_type: FieldType::List { of: &FieldType::Record(&CELL), least: 0, most: 8 },
            is_optional: true,
            help: "Differences of the cells after the first, row by row.",
        },
    ],
};

const CELL: FieldRecord = FieldRecord {
    name: "Cell",
    help: "Differences of one cell of a grid from the view.",
    members: &[
        FieldMember {
            name: "array",
            former: None,
            field_type: FieldType::Text,
            is_optional: true,
            help: "Name of the array; as in the view if missing.",
        },
        FieldMember {
            name: "time",
            former: None,
            field_type: FieldType::Index { last: None },
            is_optional: true,
            help: "Index on the time axis; as in the view if missing.",
        },
        FieldMember {
            name: "at",
            former: None,
            field_type: FieldType::Indices,
            is_optional: true,
            help: "Index on axes that are neither space nor time, by name; as in the view where not named.",
        },
    ],
};

pub(super) const CAMERA: FieldRecord = FieldRecord {
    name: "Camera",
    help: "Camera in world space.",
    members: &[
        FieldMember {
            name: "eye",
            former: None,
            field_type: FieldType::Point,
            is_optional: false,
            help: "Position of the eye.",
        },
        FieldMember {
            name: "target",
            former: None,
            field_type: FieldType::Point,
            is_optional: false,
            help: "Point that it looks at.",
        },
        FieldMember {
            name: "up",
            former: None,
            field_type: FieldType::Point,
            is_optional: false,
            help: "Approximate up direction of the picture; any length.",
        },
        FieldMember {
            name: "projection",
            former: None,
            field_type: FieldType::OneOf(&PROJECTION),
            is_optional: false,
            help: "Perspective or parallel.",
        },
    ],
};

const PROJECTION: FieldUnion = FieldUnion {
    name: "Projection",
    help: "Perspective, by its full vertical angle in radians, or parallel rays, by the height of the picture in world units.",
    variants: &[
        (
            "perspective",
            FieldMember {
                name: "fov_y_rad",
                former: None,
                field_type: FieldType::Number(NumberRange::inside(MIN_FOV_RAD, MAX_FOV_RAD)),
                is_optional: false,
                help: "Full vertical angle, radians.",
            },
        ),
        (
            "orthographic",
            FieldMember {
                name: "height_world",
                former: None,
                field_type: FieldType::Number(NumberRange::above(0.0, MAX_WORLD)),
                is_optional: false,
                help: "Height of the picture, world units.",
            },
        ),
    ],
};

pub(super) const TRANSFER: FieldRecord = FieldRecord {
    name: "Transfer",
    help: "Transfer function over decoded values.",
    members: &[
        FieldMember {
            name: "range",
            former: None,
            field_type: FieldType::Range,
            is_optional: false,
            help: "Values at the ends of the color map.",
        },
        FieldMember {
            name: "map",
            former: None,
            field_type: FieldType::Text,
            is_optional: false,
            help: "Name of the color map; with `_r` at its end it is reversed.",
        },
        FieldMember {
            name: "reversed",
            former: None,
            field_type: FieldType::Flag,
            is_optional: true,
            help: "Whether the color map is reversed, in addition to `_r` in its name; false where omitted.",
        },
        FieldMember {
            name: "scale",
            former: None,
            field_type: FieldType::Choice(&SCALE),
            is_optional: true,
            help: "Scale of the values, for colors and between points of opacity; linear where omitted.",
        },
        FieldMember {
            name: "opacity",
            former: None,
            field_type: FieldType::List { of: &FieldType::OpacityPoint, least: 1, most: MAX_OPACITY_POINTS },
            is_optional: false,
            help: "Opacity over one smallest voxel spacing of level 0, by value: points in ascending order, linear on the scale between.",
        },
    ],
};

const SCALE: FieldChoice = FieldChoice {
    name: "ValueScale",
    list: "VALUE_SCALES",
    help: "Scale of the values of a transfer function.",
    names: &[
        ChoiceName { name: "linear", alias: None, help: "Equal differences are equally far apart." },
        ChoiceName {
            name: "log",
            alias: None,
            help: "Equal ratios are equally far apart; values of 0 and less are transparent, or have the lowest color where opacity is not used. The range must lie above 0.",
        },
        ChoiceName {
            name: "symlog",
            alias: None,
            help: "Logarithm on both sides of zero: sign(v) log(1 + |v| / c), nearly linear up to c, a thousandth of the largest magnitude of the range.",
        },
    ],
};

pub(super) const COLOR_BY: FieldRecord = FieldRecord {
    name: "ColorBy",
    help: "Other array whose values determine all colors; its voxels have the same positions.",
    members: &[
        FieldMember {
            name: "array",
            former: None,
            field_type: FieldType::Text,
            is_optional: false,
            help: "Its name.",
        },
        FieldMember {
            name: "at",
            former: None,
            field_type: FieldType::Indices,
            is_optional: true,
            help: "Index on its axes that are neither space nor time, by name; as in the view where not named.",
        },
        FieldMember {
            name: "range",
            former: None,
            field_type: FieldType::Nullable(&FieldType::Range),
            is_optional: true,
            help: "Decoded values at the ends of the color map; null: the server chooses.",
        },
        FieldMember {
            name: "map",
            former: None,
            field_type: FieldType::Nullable(&FieldType::Text),
            is_optional: true,
            help: "Name of the color map; null: the server chooses.",
        },
    ],
};

pub(super) const SURFACE: FieldRecord = FieldRecord {
    name: "Surface",
    help: "Isosurface: all points with one decoded value.",
    members: &[
        FieldMember {
            name: "value",
            former: None,
            field_type: FieldType::Number(NumberRange::ALL),
            is_optional: false,
            help: "Decoded value.",
        },
        FieldMember {
            name: "color",
            former: Some("colour"),
            field_type: FieldType::Color,
            is_optional: false,
            help: "Color, sRGB.",
        },
        FieldMember {
            name: "opacity",
            former: None,
            field_type: FieldType::Number(NumberRange::between(0.0, 1.0)),
            is_optional: false,
            help: "Opacity, 0 to 1; it does not depend on the voxel spacing.",
        },
    ],
};

pub(super) const SLICE: FieldRecord = FieldRecord {
    name: "Slice",
    help: "Plane through the volume, opaque in the colors of the transfer function: across an axis, or with `normal` in any direction.",
    members: &[
        FieldMember {
            name: "axis",
            former: None,
            field_type: FieldType::Choice(&SPACE_AXIS),
            is_optional: false,
            help: "Axis that it lies across; of an oblique plane one that is roughly perpendicular, for older programs.",
        },
        FieldMember {
            name: "at",
            former: None,
            field_type: FieldType::Number(NumberRange::ALL),
            is_optional: false,
            help: "Index on that axis at level 0; between whole numbers values are interpolated, except for labels.",
        },
        FieldMember {
            name: "normal",
            former: None,
            field_type: FieldType::Point,
            is_optional: true,
            help: "Direction perpendicular to an oblique plane, world space, of any length; `axis` and `at` are then ignored.",
        },
        FieldMember {
            name: "point",
            former: None,
            field_type: FieldType::Point,
            is_optional: true,
            help: "Point of an oblique plane, world space; needed with `normal`.",
        },
        FieldMember {
            name: "nearest",
            former: None,
            field_type: FieldType::Flag,
            is_optional: true,
            help: "True if voxels are drawn as areas of one color; otherwise values are interpolated.",
        },
        FieldMember {
            name: "hidden",
            former: None,
            field_type: FieldType::Flag,
            is_optional: true,
            help: "True if the plane is remembered but not drawn.",
        },
    ],
};

pub(super) const LAYER: FieldRecord = FieldRecord {
    name: "Layer",
    help: "Layer over the array: another array or geometry; it has exactly one of `array` and `geometry`.",
    members: &[
        FieldMember {
            name: "array",
            former: None,
            field_type: FieldType::Text,
            is_optional: true,
            help: "Name of the array.",
        },
        FieldMember {
            name: "geometry",
            former: None,
            field_type: FieldType::Text,
            is_optional: true,
            help: "Name of the geometry: surfaces, lines, points or texts.",
        },
        FieldMember {
            name: "name",
            former: None,
            field_type: FieldType::Text,
            is_optional: true,
            help: "Name in lists; that of the array or geometry where omitted.",
        },
        FieldMember {
            name: "visible",
            former: None,
            field_type: FieldType::Flag,
            is_optional: true,
            help: "False if the layer is remembered but not drawn.",
        },
        FieldMember {
            name: "opacity",
            former: None,
            field_type: FieldType::Number(NumberRange::between(0.0, 1.0)),
            is_optional: true,
            help: "Opacity of the whole layer, 0 to 1; 1 where omitted.",
        },
        FieldMember {
            name: "at",
            former: None,
            field_type: FieldType::Indices,
            is_optional: true,
            help: "Array: index on its axes that are neither space nor time, by name; as in the view where not named.",
        },
        FieldMember {
            name: "transfer",
            former: None,
            field_type: FieldType::Nullable(&FieldType::Record(&TRANSFER)),
            is_optional: true,
            help: "Color and opacity by value of the array, or of the vertices; null: chosen to suit the values.",
        },
        FieldMember {
            name: "labels",
            former: None,
            field_type: FieldType::Choice(&LAYER_LABELS),
            is_optional: true,
            help: "Array: its values are labels, drawn like this; where omitted, arrays of labels are filled.",
        },
        FieldMember {
            name: "drawn",
            former: None,
            field_type: FieldType::Choice(&LAYER_FACES),
            is_optional: true,
            help: "Geometry: drawing of its faces; solid where omitted.",
        },
        FieldMember {
            name: "color",
            former: None,
            field_type: FieldType::Color,
            is_optional: true,
            help: "Geometry: color where no values give colors, sRGB; chosen where omitted.",
        },
        FieldMember {
            name: "by",
            former: None,
            field_type: FieldType::Nullable(&FieldType::Text),
            is_optional: true,
            help: "Geometry: name of the values of its vertices that give the colors; null: none.",
        },
        FieldMember {
            name: "size",
            former: None,
            field_type: FieldType::Number(NumberRange::between(MIN_LAYER_SIZE_PIXELS, MAX_LAYER_SIZE_PIXELS)),
            is_optional: true,
            help: "Geometry: width of points and lines, pixels; chosen where omitted.",
        },
    ],
};

const LAYER_LABELS: FieldChoice = FieldChoice {
    name: "LayerLabels",
    list: "LAYER_LABELS",
    help: "Drawing of the labels of a layer.",
    names: &[
        ChoiceName { name: "filled", alias: None, help: "All voxels of a label." },
        ChoiceName {
            name: "outlined",
            alias: None,
            help: "On planes and images only voxels beside another label; in volumes as filled.",
        },
    ],
};

const LAYER_FACES: FieldChoice = FieldChoice {
    name: "LayerFaces",
    list: "LAYER_FACES",
    help: "Drawing of the faces of geometry.",
    names: &[
        ChoiceName { name: "solid", alias: None, help: "Lit faces." },
        ChoiceName { name: "wireframe", alias: None, help: "Edges of faces." },
        ChoiceName { name: "points", alias: None, help: "Corners of faces." },
    ],
};

const SPACE_AXIS: FieldChoice = FieldChoice {
    name: "SpaceAxis",
    list: "SPACE_AXES",
    help: "Axis of the drawn volume.",
    names: &[
        ChoiceName {
            name: "x",
            alias: None,
            help: "Axis x; the last axis of an array without spatial axes.",
        },
        ChoiceName { name: "y", alias: None, help: "Axis y, or the one before." },
        ChoiceName { name: "z", alias: None, help: "Axis z, or the one before that." },
    ],
};

pub(super) const MODE: FieldChoice = FieldChoice {
    name: "Mode",
    list: "MODES",
    help: "Drawing of the volume besides isosurfaces and slices.",
    names: &[
        ChoiceName { name: "composite", alias: None, help: "All that the transfer function shows." },
        ChoiceName { name: "surfaces", alias: None, help: "Nothing but isosurfaces and slices." },
        ChoiceName {
            name: "maximum",
            alias: Some("mip"),
            help: "Largest value along each ray, in its color; opacity is not used.",
        },
        ChoiceName {
            name: "minimum",
            alias: Some("minip"),
            help: "Smallest value along each ray, in its color; opacity is not used.",
        },
    ],
};
