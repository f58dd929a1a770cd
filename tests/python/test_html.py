"""Tables in HTML of data sets and arrays."""

import html.parser
import pathlib

import corridor
import netCDF4
import numpy as np


class _Reader(html.parser.HTMLParser):
    """Collects tags and text, and checks that tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_tables_show_the_facts_and_escape_all_text(tmp_path: pathlib.Path) -> None:
    evil = "<script>alert('x')</script> & \"quotes\""
    with netCDF4.Dataset(tmp_path / "<b>a&b.nc", "w") as file:
        file.createDimension("z<i>", 4)
        file.createDimension("lat", 5)
        lat = file.createVariable("lat", "f8", ["lat"])
        lat[:], lat.units = np.linspace(40, 60, 5), "degrees_north"
        rho = file.createVariable("rho", "f4", ["z<i>", "lat"], chunksizes=[2, 5])
        rho[:], rho.units, rho.note = 1, evil, evil
        rho.many = np.arange(5000)
        file.title = evil
    data = corridor.open(tmp_path / "<b>a&b.nc")
    whole, one = _Reader(data._repr_html_()), _Reader(data["rho"]._repr_html_())
    for table in (whole, one):
        assert table.tags <= {"style", "div", "b", "span", "code", "details", "summary", "table", "tr", "th", "td"}
        assert table.attributes <= {"class"}
        for fact in ("rho", evil, "z<i>: 4, lat: 5", "float32", "80 bytes", "degrees_north", "40 … 60, step 5", "2 × 5"):
            assert fact in table.text, fact
        assert len(table.text) < 10_000
    assert "<b>a&b.nc" in whole.text and "NetCDF-4" in whole.text and "2 arrays" in whole.text


def test_many_levels_and_scalars() -> None:
    array = corridor.open("synthetic:noise?shape=256,256,256&dtype=u8")["noise"]
    table = _Reader(array.level(1)._repr_html_())
    assert "level 1" in table.text and "256 × 256 × 256, 128 × 128 × 128" in table.text
