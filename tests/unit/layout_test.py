#!/usr/bin/env python3
"""Checks who may include whom, and what lies at the top level. The rules are those of ARCHITECTURE.md."""
import pathlib
import re
import sys
import tempfile

# folder -> prefixes of project headers that its files may include (its own folder is always allowed)
MAY_INCLUDE = {
    "allocator/base": [],
    "allocator/protocol": ["allocator/base/"],
    "allocator/driver": ["allocator/base/"],
    "allocator/vmm": ["allocator/base/", "allocator/driver/"],
    "allocator/heap": ["allocator/base/", "allocator/driver/", "allocator/vmm/"],
    "allocator/chunks": ["allocator/base/"],
    "allocator/tier": ["allocator/base/", "allocator/driver/", "allocator/vmm/"],
    "shim": ["allocator/"],
    "policies/modules": ["allocator/base/"],
    "policies/planning": ["allocator/base/"],
    "policies/file": ["allocator/base/", "allocator/protocol/"],
    "daemon": ["allocator/", "policies/"],
    "tools/simgpu": ["allocator/base/"],
    "tools": ["allocator/", "policies/"],
    "tests": ["allocator/", "shim/", "policies/", "daemon/", "tools/"],
}
FOREIGN = {  # system headers that must not appear in a folder
    "allocator/protocol": ["cuda"],
    "allocator/base": ["cuda"],
    "shim": ["nlohmann", "spdlog", "boost", "string>", "vector>", "map>", "iostream>"],
}
PROJECT = ("allocator/", "shim/", "daemon/", "policies/", "tools/", "tests/")
TOP_LEVEL = {"allocator", "shim", "daemon", "policies", "config", "tests", "tools", "build"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)


def owner(path):
    best = ""
    for folder in MAY_INCLUDE:
        if path.startswith(folder + "/") and len(folder) > len(best):
            best = folder
    return best


def violations(root):
    found = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in {".hpp", ".cpp", ".h", ".c", ".cu", ".cuh"} or name.startswith("build/"):
            continue
        folder = owner(name)
        if not folder:
            found.append(f"{name}: in no folder that the rules know")
            continue
        for kind, header in INCLUDE.findall(path.read_text(errors="replace")):
            if kind == '"' and header.startswith(PROJECT):
                if not header.startswith(tuple(MAY_INCLUDE[folder] + [folder + "/"])):
                    found.append(f"{name}: must not include {header}")
                elif header.startswith("tools/simgpu/") and folder not in ("tools/simgpu", "tests"):
                    found.append(f"{name}: only tests and the simulator include {header}")
            for bad in FOREIGN.get(folder, []):
                if (header + ">" if kind == "<" else header).startswith(bad) and kind == "<":
                    found.append(f"{name}: must not include <{header}>")
    for path in root.iterdir():
        if path.is_dir() and not path.name.startswith(".") and path.name not in TOP_LEVEL:
            found.append(f"{path.name}/: no top-level folder of the project")
    return found


def self_test():
    """The check must be able to fail."""
    planted = {
        "shim/a.cpp": '#include "daemon/b.hpp"\n',
        "daemon/a.cpp": '#include "shim/b.hpp"\n',
        "allocator/protocol/a.hpp": "#include <cuda.h>\n",
        "allocator/heap/a.hpp": '#include "allocator/chunks/b.hpp"\n',
        "daemon/c.cpp": '#include "tools/simgpu/x.hpp"\n',
        "tools/vramctl/c.cpp": '#include "tools/simgpu/x.hpp"\n',
        "shim/c.cpp": "#include <vector>\n",
        "extra/x.txt": "",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in planted.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = violations(root)
        if len(found) != len(planted):
            sys.exit("self-test: expected %d violations, found:\n%s" % (len(planted), "\n".join(found)))


self_test()
problems = violations(pathlib.Path(sys.argv[1]))
print("\n".join(problems) if problems else "layout: ok")
sys.exit(1 if problems else 0)
