//! Table of the fields of a view.
//!
//! This is the only description of the fields: the JSON schema, the command line options, the Python
//! keywords, the types and controls of the viewer and the table in `docs/view.md` are generated from it.
//! Values and defaults are in [`View`](crate::View).

pub(crate) mod bounds;
pub(crate) mod field;
mod records;
pub(crate) mod schema;
pub(crate) mod validate;

use crate::fields::bounds::{MAX_LAYERS, MAX_PARALLAX};
use crate::fields::field::{
    FieldControl, FieldKeyword, FieldOption, FieldType, NumberRange, OptionForm, ViewField,
};
use crate::slice::MAX_SLICES;
use crate::surface::MAX_SURFACES;
use records::{CAMERA, COLOR_BY, GRID, LAYER, LAYOUT, MODE, SLICE, SURFACE, TRANSFER};

/// Fields of a view except its version `v`, in the order in which they are written.
pub const FIELDS: &[ViewField] = &[
    ViewField {
        name: "array",
        former: None,
        field_type: FieldType::Text,
        help: "Name of the array to draw; empty where there is only one.",
        option: Some(FieldOption {
            name: "array",
            former: None,
            value_name: "NAME",
            help: "Name of the array to draw [default: the first with three dimensions].",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: None,
        control: FieldControl::None,
    },
    ViewField {
        name: "time",
        former: None,
        field_type: FieldType::Index { last: None },
        help: "Index on the time axis.",
        option: None,
        keyword: Some(FieldKeyword { name: "time", former: None, annotation: "", more: "" }),
        control: FieldControl::None,
    },
    ViewField {
        name: "at",
        former: None,
        field_type: FieldType::Indices,
        help: "Index on each axis that is neither space nor time, by name; 0 where not named.",
        option: None,
        keyword: None,
        control: FieldControl::None,
    },
    ViewField {
        name: "level",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Index { last: Some(255) }),
        help: "Level to draw, 0 is full resolution; null: the finest that is visible and fits into memory.",
        option: Some(FieldOption {
            name: "level",
            former: None,
            value_name: "LEVEL",
            help: "Level to draw; 0 is full resolution [default: the finest that is visible and fits into memory].",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword { name: "level", former: None, annotation: "", more: "" }),
        control: FieldControl::None,
    },
    ViewField {
        name: "camera",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Record(&CAMERA)),
        help: "Camera in world space; null: one that sees the whole volume.",
        option: Some(FieldOption {
            name: "camera",
            former: None,
            value_name: "CAMERA",
            help: "Camera: `front`, `back`, `left`, `right`, `top`, `bottom`, or JSON as in a view.",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword {
            name: "camera",
            former: None,
            annotation: "Mapping[str, Any] | str",
            more: "Also `front`, `back`, `left`, `right`, `top` or `bottom`.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "transfer",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Record(&TRANSFER)),
        help: "Transfer function: color and opacity by value; null: chosen to suit the values.",
        option: Some(FieldOption {
            name: "tf",
            former: None,
            value_name: "MAP|PRESET|JSON",
            help: "Transfer function: name of a color map or of a preset, or JSON as in a view.",
            more: "A map is reversed by `_r` at the end of its name, such as `viridis_r`. Presets by kind of data: `ct`, `ct-bone`, `ct-soft-tissue`, `ct-lung`, `mr`, `microscopy`, `segmentation`, `simulation`, `signed`. In JSON, such as `{\"scale\":\"log\"}`, members that are left out are chosen to suit the values. With --color-by a color map applies to the values of that array.",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword {
            name: "tf",
            former: None,
            annotation: "Mapping[str, Any] | str",
            more: "Also the name of a color map, reversed with `_r` at its end, or of a preset such as `ct-bone`; members that are left out of a mapping are chosen to suit the values; with `color_by` a color map applies to the values of that array.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "color_by",
        former: Some("colour_by"),
        field_type: FieldType::Nullable(&FieldType::Record(&COLOR_BY)),
        help: "Other array whose values determine all colors, including those of isosurfaces and slices; null: the values of the drawn array. Visibility and opacity still come from the drawn array; where the other array has no value, nothing is drawn. Not with mode `maximum` or `minimum`.",
        option: Some(FieldOption {
            name: "color-by",
            former: Some("colour-by"),
            value_name: "NAME|JSON",
            help: "Array whose values determine the colors: its name, or JSON.",
            more: "Its voxels must have the same positions as those of the drawn array. It also determines the colors of isosurfaces and slices; visibility and opacity still come from the drawn array. In JSON, such as `{\"array\":\"t\",\"at\":{\"c\":1},\"range\":[0,900],\"map\":\"magma\"}`, every member may be left out; without `array`, the colors come from another position in the same array.",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword {
            name: "color_by",
            former: Some("colour_by"),
            annotation: "Mapping[str, Any] | Array | str",
            more: "The array, its name, or a mapping.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "surfaces",
        former: None,
        field_type: FieldType::List { of: &FieldType::Record(&SURFACE), least: 0, most: MAX_SURFACES },
        help: "Isosurfaces.",
        option: Some(FieldOption {
            name: "iso",
            former: None,
            value_name: "VALUE[:COLOR[:OPACITY]]",
            help: "Isosurface at this value; may be given up to 20 times.",
            more: "VALUE may be a share of the range of the colors, such as `50%`. COLOR is `#rrggbb`, OPACITY is 0 to 1 [default: a different color for each, opaque]. Isosurfaces given here replace those of the view.",
            form: OptionForm::Repeated,
        }),
        keyword: Some(FieldKeyword {
            name: "iso",
            former: None,
            annotation: "SupportsFloat | str | Sequence[SupportsFloat | str | Mapping[str, Any]]",
            more: "Each a number, `VALUE:COLOR:OPACITY` such as `0.5:#c03020:0.4`, or as in a view.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "slices",
        former: None,
        field_type: FieldType::List { of: &FieldType::Record(&SLICE), least: 0, most: MAX_SLICES },
        help: "Slices across the axes of the volume.",
        option: Some(FieldOption {
            name: "slice",
            former: None,
            value_name: "AXIS=INDEX|AXIS=SHARE%",
            help: "Slice across an axis, at an index or at a share of the axis; may be given up to 16 times.",
            more: "AXIS is x, y or z, or the name of the axis in the file. INDEX counts voxels of level 0 from 0. A slice is opaque, in the colors of the transfer function. Slices given here replace those of the view. An oblique slice is JSON as in a view, such as `{\"axis\":\"z\",\"at\":40,\"normal\":[0,1,1],\"point\":[10,10,40]}`.",
            form: OptionForm::Repeated,
        }),
        keyword: Some(FieldKeyword {
            name: "slices",
            former: None,
            annotation: "Mapping[str, float | str] | Sequence[str | Mapping[str, Any]]",
            more: "Such as `{\"z\": 40, \"lat\": \"50%\"}`; axes may be named as in the file.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "layers",
        former: None,
        field_type: FieldType::List { of: &FieldType::Record(&LAYER), least: 0, most: MAX_LAYERS },
        help: "Layers over the array, drawn in this order: other arrays, also of other resolution and position in the same space, and geometry.",
        option: Some(FieldOption {
            name: "layer",
            former: None,
            value_name: "ARRAY|FILE|JSON",
            help: "Layer over the array: another array, a file with one, or geometry; may be given up to 8 times.",
            more: "Members follow after commas, such as `segmentation,opacity=0.5,labels=outlined` or `lung.ply,color=#c03020`. Members: `opacity` (0 to 1), `name`, `visible`, for arrays `labels` (`filled` or `outlined`), for geometry `drawn` (`solid`, `wireframe` or `points`), `color`, `by` and `size`; JSON as in a view has more. Layers given here replace those of the view.",
            form: OptionForm::Repeated,
        }),
        keyword: Some(FieldKeyword {
            name: "layers",
            former: None,
            annotation: "Array | str | Mapping[str, Any] | Sequence[Array | str | Mapping[str, Any]]",
            more: "Each the name of an array, the location of a data set, a file of geometry, or a mapping such as `{\"array\": \"segmentation\", \"opacity\": 0.5}`.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "mode",
        former: None,
        field_type: FieldType::Choice(&MODE),
        help: "Drawing of the volume besides isosurfaces and slices.",
        option: Some(FieldOption {
            name: "mode",
            former: None,
            value_name: "",
            help: "Drawing of the volume besides isosurfaces and slices [default: as in the view, else `composite`; `surfaces` without --view, if there is --slice, or --iso without --tf].",
            more: "The color map of --color-by does not count as --tf here.",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword { name: "mode", former: None, annotation: "", more: "" }),
        control: FieldControl::None,
    },
    ViewField {
        name: "shading",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Flag),
        help: "Lighting of the volume by the gradient of its values, with a light at the camera; null: on for volumes of continuous values, off for images, maps and labels. Isosurfaces are always lit.",
        option: Some(FieldOption {
            name: "shading",
            former: None,
            value_name: "",
            help: "Lighting of the volume by the gradient of its values [default: as in the view, else on for volumes of continuous values].",
            more: "Isosurfaces are always lit.",
            form: OptionForm::Switch,
        }),
        keyword: Some(FieldKeyword { name: "shading", former: None, annotation: "", more: "" }),
        control: FieldControl::Switch { label: "Shading" },
    },
    ViewField {
        name: "lighting",
        former: None,
        field_type: FieldType::Number(NumberRange::between(0.0, 1.0)),
        help: "Strength of the light on isosurfaces, and on the volume with `shading`, from 0 (flat colors) to 1.",
        option: Some(FieldOption {
            name: "lighting",
            former: None,
            value_name: "STRENGTH",
            help: "",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword { name: "lighting", former: None, annotation: "", more: "" }),
        control: FieldControl::Slider { label: "Strength of the light", step: 0.05 },
    },
    ViewField {
        name: "occlusion",
        former: None,
        field_type: FieldType::Number(NumberRange::between(0.0, 1.0)),
        help: "Ambient occlusion of the volume with `shading`: the share of the light that places lose which opaque surroundings enclose, from 0 to 1 [default: 0.7].",
        option: Some(FieldOption {
            name: "occlusion",
            former: None,
            value_name: "SHARE",
            help: "",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword { name: "occlusion", former: None, annotation: "", more: "" }),
        control: FieldControl::Slider { label: "Ambient occlusion", step: 0.05 },
    },
    ViewField {
        name: "depth_cue",
        former: None,
        field_type: FieldType::Number(NumberRange::between(0.0, 1.0)),
        help: "Depth cue of isosurfaces, and of the volume with `shading`: the share of the light that the farthest places lose, from 0 to 1 [default: 0.4].",
        option: Some(FieldOption {
            name: "depth-cue",
            former: None,
            value_name: "SHARE",
            help: "",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword { name: "depth_cue", former: None, annotation: "", more: "" }),
        control: FieldControl::Slider { label: "Depth cue", step: 0.05 },
    },
    ViewField {
        name: "grids",
        former: None,
        field_type: FieldType::Flag,
        help: "Draw the grids of an adaptive mesh as lines, in one color for each level.",
        option: Some(FieldOption {
            name: "grids",
            former: None,
            value_name: "",
            help: "",
            more: "At most 4,096 grids are drawn, those of coarse levels first.",
            form: OptionForm::Present,
        }),
        keyword: Some(FieldKeyword { name: "grids", former: None, annotation: "", more: "" }),
        control: FieldControl::Switch { label: "Mesh grids" },
    },
    ViewField {
        name: "stereo",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Number(NumberRange::above(0.0, MAX_PARALLAX))),
        help: "Stereo pair, side by side in one picture, the left eye's on the left: the distance of the eyes divided by their distance to the point that the camera looks at; null: one picture. For perspective cameras only.",
        option: Some(FieldOption {
            name: "stereo",
            former: None,
            value_name: "PARALLAX",
            help: "Draw a stereo pair: two pictures side by side, the left eye's on the left.",
            more: "Each picture is half as wide as --size. The point that the camera looks at lies in the plane of the picture (off-axis frusta). PARALLAX is the distance of the eyes divided by their distance to that point, such as `0.05` [default: 1/30]. For perspective cameras only.",
            form: OptionForm::Assigned("1/30"),
        }),
        keyword: Some(FieldKeyword {
            name: "stereo",
            former: None,
            annotation: "bool | float",
            more: "`True` is 1/30; each picture is half as wide as `size` says.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "clip",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Box),
        help: "Part of the volume that is drawn: lowest and highest corner `[x, y, z]`, shares from 0 to 1; null: all of it.",
        option: None,
        keyword: None,
        control: FieldControl::None,
    },
    ViewField {
        name: "background",
        former: None,
        field_type: FieldType::Color,
        help: "Background, sRGB.",
        option: Some(FieldOption {
            name: "background",
            former: None,
            value_name: "COLOR",
            help: "Background: `dark`, `black`, `gray`, `light`, `white`, a color such as `#f0f0f0`, or `transparent` in PNG files [default: dark].",
            more: "",
            form: OptionForm::Value,
        }),
        keyword: Some(FieldKeyword {
            name: "background",
            former: None,
            annotation: "str | Sequence[int]",
            more: "Also `dark`, `black`, `gray`, `light`, `white` or `#rrggbb`; `pixels=\"rgba\"` has none.",
        }),
        control: FieldControl::None,
    },
    ViewField {
        name: "layout",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Choice(&LAYOUT)),
        help: "Arrangement of the pictures in the viewer; null: chosen by the viewer from the shape of the array. Pictures of `corridor render` do not depend on it.",
        option: None,
        keyword: None,
        control: FieldControl::None,
    },
    ViewField {
        name: "grid",
        former: None,
        field_type: FieldType::Nullable(&FieldType::Record(&GRID)),
        help: "Several pictures of the data set in a grid in the viewer; null: one. Pictures of `corridor render` do not depend on it.",
        option: None,
        keyword: None,
        control: FieldControl::None,
    },
];

/// Finds a field by its present or former name in JSON.
#[must_use]
pub fn find_field(name: &str) -> Option<&'static ViewField> {
    FIELDS.iter().find(|field| field.name == name || field.former == Some(name))
}

/// Finds the field that a keyword of Python sets, by its present or former name.
#[must_use]
pub fn find_keyword(name: &str) -> Option<&'static ViewField> {
    FIELDS.iter().find(|field| {
        field.keyword.is_some_and(|keyword| keyword.name == name || keyword.former == Some(name))
    })
}
