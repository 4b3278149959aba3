#!/usr/bin/env python3
"""Writes the tables with which the tracer compiles shim/hook: as shim/hook/generate.py, but every driver function is hooked.

usage: tracer_tables.py --hook shim/hook --compiler CXX --include FOLDER_OF_CUDA_H --out FOLDER
"""
import argparse
import pathlib
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--hook", "--include", "--out"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    parser.add_argument("--compiler", required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.hook))
    sys.dont_write_bytecode = True
    import generate

    prototypes = generate.read_prototypes(options.compiler, options.include)
    names = sorted(prototypes)
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    generate.write(out / "entries.inc", [f"ENTRY({name})" for name in names])
    rows = generate.abi_rows(names, prototypes, options.include)
    generate.write(out / "abis.inc", ['ABI("%s", %d, %s, %s)' % row for row in rows])
    generate.write(out / "trampolines.inc", [f"TRAMPOLINE {name}, {index}" for index, name in enumerate(names)])


if __name__ == "__main__":
    main()
