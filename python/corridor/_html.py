"""Tables in HTML that notebooks show for data sets and arrays: no scripts, all text escaped, on light and dark pages."""

from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._array import Array
    from ._dataset import Dataset

# Maximum number of arrays, attributes, levels and left-out variables that are listed.
_MAX_ARRAYS = 100
_MAX_ATTRIBUTES = 100
_MAX_LEVELS = 16
_MAX_LEFT_OUT = 40
# Maximum number of characters of an attribute's value.
_MAX_VALUE = 400

# Colors come from the page, so that they suit light and dark ones.
_STYLE = """<style>
.corridor-repr{font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit;max-width:60em}
.corridor-repr .cr-head{border-bottom:1px solid;border-color:rgba(128,128,128,.4);padding:.2em 0;margin-bottom:.3em}
.corridor-repr .cr-faint{opacity:.65}
.corridor-repr code{font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:inherit;background:none;color:inherit}
.corridor-repr summary{cursor:pointer;padding:.1em 0}
.corridor-repr summary:hover{background:rgba(128,128,128,.12)}
.corridor-repr .cr-body{padding:.1em 0 .4em 1.3em}
.corridor-repr table{border-collapse:collapse;margin:.2em 0;color:inherit;background:none}
.corridor-repr th,.corridor-repr td{text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0;border:0;background:none;font-weight:normal;overflow-wrap:anywhere}
.corridor-repr th{opacity:.65}
.corridor-repr td.cr-number{text-align:right}
</style>"""


def of_dataset(dataset: "Dataset") -> str:
    """Returns the table of a data set: each array on a line, which opens to its axes, storage and attributes."""
    count = f"{len(dataset)} array" + ("" if len(dataset) == 1 else "s")
    head = f"<b>{escape(dataset.name)}</b> <span class='cr-faint'>corridor.Dataset, {escape(dataset.format)}, {count}</span>"
    parts = [
        f"<details><summary>{_line(dataset[name])}</summary><div class='cr-body'>{_body(dataset[name])}</div></details>"
        for name in islice(dataset, _MAX_ARRAYS)
    ]
    if len(dataset) > _MAX_ARRAYS:
        parts.append(f"<div class='cr-faint'>and {len(dataset) - _MAX_ARRAYS} more arrays</div>")
    parts.append(_attributes(dataset.attrs))
    if dataset.left_out:
        parts.append(_folded(f"Left out ({len(dataset.left_out)})", _rows(dataset.left_out, _MAX_LEFT_OUT)))
    return _document(head, "".join(parts))


def of_array(array: "Array") -> str:
    """Returns the table of an array."""
    head = f"{_line(array)} <span class='cr-faint'>corridor.Array of {escape(array.dataset.name)}</span>"
    return _document(head, _body(array))


def _document(head: str, body: str) -> str:
    return f"{_STYLE}<div class='corridor-repr'><div class='cr-head'>{head}</div>{body}</div>"


def _line(array: "Array") -> str:
    sizes = ", ".join(f"{escape(dim)}: {size}" for dim, size in zip(array.dims, array.shape, strict=True))
    units = f" [{escape(array.units)}]" if array.units else ""
    notes = [f"level {array._level}"] if array._level else []
    notes += ["decoded"] if array._is_decoded else []
    also = f" <span class='cr-faint'>{', '.join(notes)}</span>" if notes else ""
    return f"<b>{escape(array.name)}</b>{units} <code>{escape(array.dtype.name)} ({sizes})</code> <span class='cr-faint'>{_size(array)}</span>{also}"


def _size(array: "Array") -> str:
    return array._summary().rsplit("), ", 1)[-1]


def _body(array: "Array") -> str:
    axes = "".join(
        f"<tr><td><code>{escape(dim)}</code></td><td class='cr-number'>{size}</td>{_axis(array, number)}</tr>"
        for number, (dim, size) in enumerate(zip(array.dims, array.shape, strict=True))
    )
    table = f"<table><tr><th>axis</th><th>size</th><th>units</th><th>coordinates</th></tr>{axes}</table>" if axes else ""
    facts = {"values": array.meaning}
    if array.chunks is not None:
        facts["chunks"] = " × ".join(map(str, array.chunks))
    if len(array.levels) > 1:
        shapes = [" × ".join(map(str, shape)) for shape in array.levels[:_MAX_LEVELS]]
        facts[f"levels ({len(array.levels)})"] = ", ".join(shapes)
    if array.world_units:
        facts["world units"] = array.world_units
    return table + _rows(facts, len(facts)) + _attributes(array.attrs)


def _axis(array: "Array", number: int) -> str:
    axis = array._info["axes"][number]
    known, size = axis["coordinates"], array._info["levels"][0]["shape"][number]
    if known == "index" or size == 0:
        positions = "<span class='cr-faint'>index</span>"
    elif "explicit" in known:
        ends = known["explicit"]
        positions = f"{_number(ends[0])} … {_number(ends[-1])}" if ends else "<span class='cr-faint'>none</span>"
    else:
        origin, step = known["regular"]["origin"], known["regular"]["step"]
        positions = f"{_number(origin)} … {_number(origin + step * (size - 1))}, step {_number(step)}"
    return f"<td>{escape(axis['units'])}</td><td>{positions}</td>"


def _number(value: float) -> str:
    return escape(f"{value:.10g}")


def _attributes(attrs: dict[str, Any]) -> str:
    return _folded(f"Attributes ({len(attrs)})", _rows(attrs, _MAX_ATTRIBUTES)) if attrs else ""


def _folded(title: str, body: str) -> str:
    return f"<details><summary class='cr-faint'>{escape(title)}</summary><div class='cr-body'>{body}</div></details>"


def _rows(values: dict[str, Any], most: int) -> str:
    rows = [f"<tr><th>{escape(str(name))}</th><td>{_value(value)}</td></tr>" for name, value in islice(values.items(), most)]
    if len(values) > most:
        rows.append(f"<tr><th>and {len(values) - most} more</th><td></td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _value(value: Any) -> str:
    # A long list is cut before it becomes a text.
    short = value[:_MAX_VALUE] if isinstance(value, (str, list, np.ndarray)) else value
    text = short if isinstance(short, str) else ", ".join(map(str, short)) if isinstance(short, (list, np.ndarray)) else str(short)
    is_cut = len(text) > _MAX_VALUE or (hasattr(value, "__len__") and len(value) > _MAX_VALUE)
    return escape(text[:_MAX_VALUE]) + (" …" if is_cut else "")
