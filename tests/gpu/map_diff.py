#!/usr/bin/env python3
"""Compares what runtime_calls saw (calls.json) with the map of the stand-in runtime.

usage: map_diff.py CALLS.json tools/simgpu/runtime/runtime_map.txt [--over MAP] [--exact] [--write FILE] [--quiet]
  --over MAP    rows of MAP replace rows of the first map (runtime_map_permuted.txt)
  --exact       rows that were not seen and driver calls that no row explains count as differences
  --write FILE  the map with every seen row marked `measured` and corrected where exactly one other entry was seen
Exit: 0 no difference, 1 differences, 2 usage or unreadable input.
"""
import argparse
import json
import pathlib
import re
import sys

ROW = re.compile(r"^(?P<name>\w+(?::\w+)?)(?P<gap>\s+)(?P<entry>\w+@\d+)(?P<gap2>\s+)(?P<source>assumed|measured)\s*$")
# What a runtime may do inside any call: start the driver, ask which device this is.
START = {"cuInit@2000", "cuDriverGetVersion@2020"}
QUESTIONS = ("cudaGetDevice", "cudaGetDeviceCount", "cudaDeviceGetAttribute")


def stop(text):
    print(f"map_diff: error: {text}", file=sys.stderr)
    sys.exit(2)


def read_map(path):
    """{runtime call[:case]: entry@version}, in the order of the file"""
    rows = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.split("#")[0].strip():
            continue
        row = ROW.match(line)
        if not row:
            stop(f"{path}:{number}: expected <cudaXxx>[:<case>] <cuXxx>@<version> assumed|measured")
        rows[row["name"]] = row["entry"]
    return rows


def base(name):
    return name.split(":")[0]


class Comparison:
    def __init__(self, rows, calls):
        self.rows = rows
        self.seen = {name: [made["asked"] for made in call["driver"] if not made.get("other_thread")]
                     for name, call in calls.items()}
        self.anywhere = {entry for entries in self.seen.values() for entry in entries}
        self.internal = {entry for name, entry in rows.items() if base(name) == "internal"}
        self.background = self.internal | START | {rows[name] for name in QUESTIONS if name in rows}
        self.confirmed, self.differing, self.unseen = [], {}, []
        for name, entry in rows.items():
            self.compare(name, entry)

    def compare(self, name, entry):
        if base(name) == "internal":  # no call of its own
            (self.confirmed if entry in self.anywhere else self.unseen).append(name)
            return
        entries = self.seen.get(name, self.seen.get(base(name)))
        if entries is None:
            self.unseen.append(name)
        elif entry in entries:
            self.confirmed.append(name)
        else:
            self.differing[name] = self.unexplained(name, entries)

    def explained(self, name):
        """A call that was seen under this very name answers for itself; else the rows of all its cases belong to it."""
        if ":" in name and name in self.seen:
            return self.background | {self.rows.get(name, self.rows.get(base(name)))}
        return self.background | {entry for row, entry in self.rows.items() if base(row) == base(name)}

    def unexplained(self, name, entries):
        return sorted({entry for entry in entries if entry not in self.explained(name)})

    def extra(self):
        """{call: driver calls that its row does not name}, of calls that have a row"""
        named = {base(name) for name in self.rows}
        found = {name: self.unexplained(name, entries) for name, entries in self.seen.items()
                 if base(name) in named and name not in self.differing}
        return {name: entries for name, entries in found.items() if entries}

    def corrected(self, text):
        lines = []
        for line in text.splitlines():
            row = ROW.match(line)
            if row and (row["name"] in self.confirmed or len(self.differing.get(row["name"], ())) == 1):
                entry = row["entry"] if row["name"] in self.confirmed else self.differing[row["name"]][0]
                width = len(row["entry"] + row["gap2"])
                line = f"{row['name']}{row['gap']}{entry.ljust(width - 1)} measured"
            lines.append(line)
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__.splitlines()[0])
    parser.add_argument("calls", type=pathlib.Path)
    parser.add_argument("map", type=pathlib.Path)
    parser.add_argument("--over", type=pathlib.Path)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    try:
        calls = json.loads(options.calls.read_text())["calls"]
        rows = read_map(options.map)
        if options.over:
            rows.update(read_map(options.over))
    except (OSError, ValueError, KeyError) as error:
        stop(f"cannot read {options.calls} or {options.map}: {error}; write CALLS.json of runtime_calls, then runtime_map.txt")

    found = Comparison(rows, calls)
    extra = found.extra()
    for name, entries in found.differing.items():
        print(f"differs    {name}: the map says {rows[name]}, seen: {', '.join(entries) or 'nothing that a row does not explain'}")
    if not options.quiet:
        for name in found.unseen:
            print(f"not seen   {name}")
        for name, entries in extra.items():
            print(f"also seen  {name}: {', '.join(entries)}")
    print(f"{len(found.confirmed)} rows confirmed, {len(found.differing)} differ, {len(found.unseen)} not seen")
    if options.write:
        options.write.write_text(found.corrected(options.map.read_text()))
    sys.exit(1 if found.differing or (options.exact and (found.unseen or extra)) else 0)


if __name__ == "__main__":
    main()
