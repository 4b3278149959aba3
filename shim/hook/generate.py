#!/usr/bin/env python3
"""Writes what the hook must know about the driver's API, from the CUDA headers, shim/calls/hooked.def and submission.def.

Output folder:
  entries.inc      ENTRY(name)                          every exported driver function, sorted by strcmp
  hooked.inc       HOOK(name)                           the names of hooked.def that these headers declare
  submissions.inc  SUBMIT(name, kind)                   those of submission.def that have no wrapper, SUBMIT_HOOK those that have one
  abis.inc         ABI("base", version, flavour, name)  what cuGetProcAddress means by (base, version, flags)
  trampolines.inc  TRAMPOLINE name, index               assembly, the order of entries.inc
  shim_calls.hpp   the prototypes of the wrappers in shim/calls

Sources of truth: cuda.h and cudaProfiler.h for names and prototypes, cuda*Typedefs.h for ABI versions. No version is
written here, so any CUDA from 12.4 on will do.
"""
import argparse
import pathlib
import re
import subprocess
import sys

PROTOTYPE = re.compile(r"CUresult\s+(cu[A-Za-z0-9_]+)\s*\(([^;{]*?)\)\s*;")
TYPEDEF = re.compile(r"\*PFN_(cu[A-Za-z0-9]+)_v(\d+)(_pt[ds][sz])?\)")
PER_THREAD_SUFFIXES = ("_ptsz", "_ptds")
NEWEST_SUFFIX = 9  # forms base, base_v2 ... base_v9 are looked for; CUDA 13.0 has up to _v4

# Hooked by shim/hook itself; their wrappers are not in shim/calls.
QUERIES = ("cuGetProcAddress", "cuGetProcAddress_v2")


def preprocess(compiler, include, header):
    """The header as the compiler sees it, with no function renamed to its newest form."""
    command = [compiler, "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", f"-I{include}", "-x", "c++", str(include / header)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read_prototypes(compiler, include):
    """{exported name: parameter list as text}"""
    # cudaProfiler.h includes cuda.h; some distributions of the headers leave it out.
    header = "cudaProfiler.h" if (include / "cudaProfiler.h").exists() else "cuda.h"
    text = " ".join(preprocess(compiler, include, header).split())
    prototypes = {}
    for match in PROTOTYPE.finditer(text):
        prototypes.setdefault(match.group(1), match.group(2).strip())
    if "cuGetProcAddress_v2" not in prototypes:
        sys.exit(f"{include}/cuda.h declares no cuGetProcAddress_v2: the CUDA headers must be 12.4 or newer")
    return prototypes


def read_abi_versions(include):
    """({base: versions}, {base: versions of the per-thread-stream form})"""
    legacy, per_thread = {}, {}
    for name in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        path = include / name
        if not path.exists():
            continue
        for base, version, suffix in TYPEDEF.findall(path.read_text()):
            (per_thread if suffix else legacy).setdefault(base, set()).add(int(version))
    if "cuMemAlloc" not in legacy:
        sys.exit(f"{include}/cudaTypedefs.h is missing or unreadable: it must come with cuda.h")
    return legacy, per_thread


def exported_forms(base, prototypes, suffixes):
    """The exported names of one base in the order of their age: base, base_v2, base_v3 ..."""
    stems = [base] + [f"{base}_v{number}" for number in range(2, NEWEST_SUFFIX + 1)]
    return [stem + suffix for stem in stems for suffix in suffixes if stem + suffix in prototypes]


def align(base, versions, names):
    """[(version, name)]: the newest version belongs to the newest name, and so on back."""
    if len(versions) != len(names):
        sys.exit(f"{base}: versions {sorted(versions)} do not pair with exports {names}; "
                 "the headers name ABIs in a way that generate.py does not know")
    return list(zip(sorted(versions), names))


def base_of(name):
    return re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", name)


def abi_rows(hooked, prototypes, include):
    """All ABIs of every base that has a hooked form: an older or newer form must be told apart from the hooked one."""
    legacy, per_thread = read_abi_versions(include)
    rows = []
    for base in sorted({base_of(name) for name in hooked}):
        if base not in legacy:
            sys.exit(f"{base}: cudaTypedefs.h gives no version for it, so cuGetProcAddress cannot be hooked")
        rows += [(base, version, "legacy", name)
                 for version, name in align(base, legacy[base], exported_forms(base, prototypes, ("",)))]
        if base in per_thread:
            forms = exported_forms(base, prototypes, PER_THREAD_SUFFIXES)
            rows += [(base, version, "per_thread", name) for version, name in align(base, per_thread[base], forms)]
    return rows


def read_hooked(path):
    names = re.findall(r"^HOOK\((\w+)\)", path.read_text(), re.MULTILINE)
    if len(names) != len(set(names)):
        sys.exit(f"{path}: a name is listed twice")
    return names


def read_submissions(path):
    """{name: kind}"""
    rows = re.findall(r"^SUBMIT\((\w+), (\w+)\)", path.read_text(), re.MULTILINE)
    if len(rows) != len(dict(rows)):
        sys.exit(f"{path}: a name is listed twice")
    return dict(rows)


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", required=True, help="C++ compiler, used as preprocessor")
    parser.add_argument("--include", required=True, type=pathlib.Path, help="folder with cuda.h")
    parser.add_argument("--hooked", required=True, type=pathlib.Path, help="shim/calls/hooked.def")
    parser.add_argument("--submissions", required=True, type=pathlib.Path, help="shim/calls/submission.def")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    options = parser.parse_args()

    prototypes = read_prototypes(options.compiler, options.include)
    wrapped = [name for name in read_hooked(options.hooked) if name in prototypes]
    submissions = {name: kind for name, kind in read_submissions(options.submissions).items() if name in prototypes}
    names = sorted(prototypes)
    notice = "Generated by shim/hook/generate.py. Do not edit."

    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    write(out / "entries.inc", [f"// {notice}"] + [f"ENTRY({name})" for name in names])
    # A wrapped submission has one door only, which does both.
    write(out / "hooked.inc", [f"// {notice}"] + [f"HOOK({name})" for name in wrapped if name not in submissions])
    write(out / "submissions.inc", [f"// {notice}"] + [f"{'SUBMIT_HOOK' if name in wrapped else 'SUBMIT'}({name}, {kind})"
                                                       for name, kind in submissions.items()])
    rows = abi_rows([*wrapped, *submissions, *QUERIES], prototypes, options.include)
    write(out / "abis.inc", [f"// {notice}"] + ['ABI("%s", %d, %s, %s)' % row for row in rows])
    write(out / "trampolines.inc", [f"/* {notice} */"] + [f"TRAMPOLINE {name}, {index}" for index, name in enumerate(names)])
    write(out / "shim_calls.hpp", [
        f"// {notice}",
        "// What a program's call of a hooked driver function runs. Bodies: shim/calls.",
        "#pragma once", "", "#include <cuda.h>", "",
        "namespace vramd::shim::calls {", "",
        *[f"CUresult {name}({prototypes[name]});" for name in wrapped],
        "", "}  // namespace vramd::shim::calls"])


if __name__ == "__main__":
    main()
