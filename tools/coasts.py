"""Makes data/coasts.geojson from `land-110m.json` of the npm package world-atlas (Natural Earth 1:110m, public domain).

Usage: npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz && python tools/coasts.py package/land-110m.json > data/coasts.geojson
"""

import json
import sys


def lines(topology):
    """Yields the arcs as lists of longitude and latitude, without the edges of the map."""
    (scale_x, scale_y), (origin_x, origin_y) = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        line = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            line.append([round(x * scale_x + origin_x, 2), round(y * scale_y + origin_y, 2)])
        part = line[:1]
        for before, after in zip(line, line[1:]):
            is_edge = before[0] == after[0] and abs(after[0]) > 179.9 or max(before[1], after[1]) < -89.9
            if is_edge:
                if len(part) > 1:
                    yield part
                part = [after]
            else:
                part.append(after)
        if len(part) > 1:
            yield part


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        topology = json.load(file)
    json.dump({"type": "MultiLineString", "coordinates": list(lines(topology))}, sys.stdout, separators=(",", ":"))
    print()


main()
