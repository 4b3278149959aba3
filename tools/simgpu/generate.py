#!/usr/bin/env python3
"""Generates the simulated driver's exports from the toolkit's public headers.

usage: generate.py --include DIR --out DIR [--compiler CXX] SOURCE...

SOURCE are the files that implement driver functions: every line "CUresult cuXxx(" at column 0 is an implementation in
namespace simgpu::impl. Written to --out:
  impl.hpp       declarations of the implemented functions, so that a wrong signature does not compile
  exports.inc    one exported wrapper per driver function of cuda.h and cudaProfiler.h
  functions.inc  one row per export, in the order of the wrappers' indices
  procs.inc      the cuGetProcAddress table: ROW(name, version, flags, exported function)
  results.inc    the names of all CUresult values
"""
import argparse
import pathlib
import re
import subprocess
import sys

PER_THREAD = re.compile(r"_pt[ds][sz]$")
VERSION = re.compile(r"_v(\d+)$")
# What the driver answers before cuInit and in a forked child.
BEFORE_INIT = {"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress",
               "cuGetProcAddress_v2", "cuGetExportTable"}


def preprocess(compiler, include, header):
    # __CUDA_API_VERSION_INTERNAL keeps cuda.h from renaming functions to their latest version.
    command = [compiler, "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-I", include, "-x", "c++", f"{include}/{header}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def split_parameters(text):
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    parts, depth, current = [], 0, ""
    for character in text:
        depth += character in "(<"
        depth -= character in ")>"
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return parts + [current.strip()]


def parameter_name(parameter):
    return re.search(r"([A-Za-z_]\w*)$", re.sub(r"\[[^\]]*\]\s*$", "", parameter).strip()).group(1)


def parameter_types(parameters):
    return [re.sub(r"\s+", "", p.strip()[: -len(parameter_name(p))] if not p.endswith("]") else p) for p in parameters]


def prototypes(text):
    found = {}
    for name, parameters in re.findall(r"CUresult\s+(cu[A-Za-z0-9_]+)\s*\(([^;{]*?)\)\s*;", text.replace("\n", " ")):
        found.setdefault(name, split_parameters(parameters))
    return found


def implemented(sources):
    names = set()
    for source in sources:
        names |= set(re.findall(r"^CUresult (cu[A-Za-z0-9_]+)\(", pathlib.Path(source).read_text(), re.M))
    return names


def implementation_of(name, functions, available):
    """The implementation that serves an export: its own, its base form's (for _ptsz and _ptds), or that of another version
    of the same function with identical parameter types."""
    base = PER_THREAD.sub("", name)
    if base in available:
        return base
    stem = VERSION.sub("", base)
    wanted = parameter_types(functions[name])
    for candidate in [f"{stem}_v{i}" for i in range(9, 1, -1)] + [stem]:
        if candidate in available and parameter_types(functions[candidate]) == wanted:
            return candidate
    return None


def versions_of(stem, functions, suffixes=("",)):
    names = [stem] + [f"{stem}_v{i}" for i in range(2, 10)]
    return [name + suffix for name in names for suffix in suffixes if name + suffix in functions]


def proc_rows(include, functions):
    """Typedefs PFN_<name>_v<version> in ascending order belong to the exports <name>, <name>_v2, ...; where fewer exports
    than versions exist the latest ones are meant. Per-thread forms are a list of their own, with flag 2."""
    text = ""
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        text += pathlib.Path(include, header).read_text()
    legacy, per_thread = {}, {}
    for stem, version, suffix in re.findall(r"\*PFN_(cu[A-Za-z0-9]+)_v(\d+)(_pt[ds][sz])?\)", text):
        (per_thread if suffix else legacy).setdefault(stem, set()).add(int(version))
    for table, flag, suffixes in ((legacy, 0, ("",)), (per_thread, 2, ("_ptsz", "_ptds"))):
        for stem in sorted(table):
            versions, exports = sorted(table[stem]), versions_of(stem, functions, suffixes)
            if len(versions) != len(exports):
                print(f"generate.py: warning: {stem}: versions {versions} but exports {exports}", file=sys.stderr)
            count = min(len(versions), len(exports))
            if count:
                yield from ((stem, v, flag, e) for v, e in zip(versions[-count:], exports[-count:]))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--include", required=True)
    arguments.add_argument("--out", required=True)
    arguments.add_argument("--compiler", default="g++")
    arguments.add_argument("sources", nargs="+")
    options = arguments.parse_args()

    # cudaProfiler.h includes cuda.h. PyPI has it in a package of its own; without it three exports are missing.
    profiler = pathlib.Path(options.include, "cudaProfiler.h").exists()
    text = preprocess(options.compiler, options.include, "cudaProfiler.h" if profiler else "cuda.h")
    functions = prototypes(text)
    if len(functions) < 400:
        sys.exit(f"generate.py: only {len(functions)} driver functions found in {options.include}/cuda.h; "
                 "is this the include folder of a CUDA toolkit (12.4 or later)?")
    available = implemented(options.sources) & set(functions)
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)

    declarations, wrappers, rows = [], [], []
    for index, (name, parameters) in enumerate(sorted(functions.items())):
        signature = ", ".join(parameters)
        names = ", ".join(parameter_name(p) for p in parameters)
        target = implementation_of(name, functions, available)
        if name in available:
            declarations.append(f"CUresult {name}({signature});")
        traits = "kBeforeInit" if name in BEFORE_INIT else "kPerThread" if PER_THREAD.search(name) else "kPlain"
        body = f"SIMGPU_CALL({index}, {traits}, impl::{target}({names}))" if target else f"SIMGPU_MISSING({index})"
        wrappers.append(f"SIMGPU_EXPORT CUresult {name}({signature}) {{ {body} }}")
        rows.append(f'{{"{name}", {"true" if target else "false"}}},')
    procs = [f'ROW("{stem}", {version}, {flag}, {export})'
             for stem, version, flag, export in proc_rows(options.include, functions)]
    enum = re.search(r"typedef enum cudaError_enum \{(.*?)\}", text, re.S).group(1)
    results = [f'{{{value}, "{name}"}},' for name, value in re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", enum)]

    (out / "impl.hpp").write_text("#pragma once\n#include <cuda.h>\n#if __has_include(<cudaProfiler.h>)\n#include <cudaProfiler.h>\n#endif\n\nnamespace simgpu::impl {\n"
                                  + "\n".join(declarations) + "\n}  // namespace simgpu::impl\n")
    for file, lines in (("exports.inc", wrappers), ("functions.inc", rows), ("procs.inc", procs), ("results.inc", results)):
        (out / file).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
