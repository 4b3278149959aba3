#!/usr/bin/env python3
"""Turns the data files of the stand-in runtime into C++.

usage: generate_tables.py SOURCE_FOLDER CUDA_INCLUDE OUTPUT_FOLDER

lookups.txt                                 -> lookups.inc       rows for the look-up table
runtime_map.txt, runtime_map_permuted.txt   -> rows.hpp          one type per row: which driver entry, with its prototype
unsupported.txt                             -> unsupported.inc   functions that answer cudaErrorNotSupported
driver_types.h of the toolkit               -> error_names.inc   names of the error codes
"""
import pathlib
import re
import sys


def lines(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].split()
        if line:
            yield number, line


def stop(path, number, message):
    sys.exit(f"{path}:{number}: error: {message}")


def read_lookups(path):
    return [(name.strip('"'), int(version), int(flags)) for _, (name, version, flags, *_) in lines(path)]


def read_map(path, slots):
    """{runtime call: (driver name, version, legacy slot, per-thread slot)}"""
    rows = {}
    for number, fields in lines(path):
        if len(fields) != 3 or fields[2] not in ("assumed", "measured"):
            stop(path, number, "expected: <cudaXxx>[:<case>] <cuXxx>@<version> assumed|measured")
        name, entry, _ = fields
        if name in rows:
            stop(path, number, f"{name} has two rows")
        driver, _, version = entry.partition("@")
        if (driver, version, "0") not in slots:
            stop(path, number, f"the runtime never looks {entry} up: it must be a row of lookups.txt")
        # The per-thread form mostly exists since 7000 only; where it has several versions, the row's own is meant.
        forms = [v for (n, v, f) in slots if n == driver and f == "2"]
        form = version if version in forms else forms[0] if len(forms) == 1 else None
        per_thread = slots[(driver, form, "2")] if form else -1
        rows[name] = (driver, version, slots[(driver, version, "0")], per_thread)
    return rows


def write_rows(path, standard, permuted):
    unknown = set(permuted) - set(standard)
    if unknown:
        sys.exit(f"runtime_map_permuted.txt: error: not in runtime_map.txt: {', '.join(sorted(unknown))}")
    out = ["// Generated from runtime_map.txt and runtime_map_permuted.txt.", "#pragma once", "", "namespace simgpu::runtime::row {"]
    for name in standard:
        out.append(f"struct {name.replace(':', '_')} {{")
        out.append(f'  static constexpr const char* kName = "{name}";')
        for title, table in (("Standard", standard), ("Permuted", permuted)):
            driver, version, legacy, per_thread = table.get(name, standard[name])
            out.append(f"  using {title} = PFN_{driver}_v{version};")
            out.append(f"  static constexpr Slots k{title}{{{legacy}, {per_thread}}};  // {driver}@{version}")
        out.append("};")
    out.append("}  // namespace simgpu::runtime::row")
    path.write_text("\n".join(out) + "\n")


def write_errors(path, header):
    # Only the enum of cudaError: other enums of the header have members of similar names.
    text = re.search(r"enum\s+(?:\w+\s+)?cudaError\s*\{(.*?)\};", header.read_text(errors="replace"), re.S).group(1)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = re.findall(r"(cuda(?:Success|Error\w+))\s*=\s*(\d+)", text)
    path.write_text("".join(f'case {code}: return "{name}";\n' for name, code in found))


def main():
    source, include, output = (pathlib.Path(argument) for argument in sys.argv[1:4])
    output.mkdir(parents=True, exist_ok=True)
    lookups = read_lookups(source / "lookups.txt")
    slots = {(name, str(version), str(flags)): slot for slot, (name, version, flags) in enumerate(lookups)}
    (output / "lookups.inc").write_text("".join(f'{{"{n}", {v}, {f}}},\n' for n, v, f in lookups))
    write_rows(output / "rows.hpp", read_map(source / "runtime_map.txt", slots),
               read_map(source / "runtime_map_permuted.txt", slots))
    (output / "unsupported.inc").write_text(
        "".join(f"SIMGPU_UNSUPPORTED({fields[0]})\n" for _, fields in lines(source / "unsupported.txt")))
    write_errors(output / "error_names.inc", include / "driver_types.h")


if __name__ == "__main__":
    main()
