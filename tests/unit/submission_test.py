#!/usr/bin/env python3
"""shim/calls/submission.def names every driver function that submits work: none that the headers declare is forgotten.

usage: submission_test.py COMPILER SOURCE_ROOT CUDA_INCLUDE
"""
import pathlib
import re
import sys

HANDLE = re.compile(r"\bCUstream\b|\bCUgraphExec\b")
# Submit on the default stream, or on streams of their own choice: no handle tells them.
WITHOUT_HANDLE = re.compile(r"cu(Memcpy|Memset|Launch)")


def problems(prototypes, listed, excepted, base_of):
    found = []
    for name, parameters in sorted(prototypes.items()):
        submits = HANDLE.search(parameters) or WITHOUT_HANDLE.match(name)
        if submits and name not in listed and base_of(name) not in excepted:
            found.append(f"{name}({parameters}): neither SUBMIT nor NO_SUBMISSION in shim/calls/submission.def")
    for base in sorted(excepted & {base_of(name) for name in listed}):
        found.append(f"{base}: both a submission and an exception")
    # Every ABI and flavour of a submission submits.
    bases = {base_of(name) for name in listed}
    for name in sorted(prototypes):
        if base_of(name) in bases and name not in listed:
            found.append(f"{name}: another form of it is a submission, this one is not listed")
    return found


def main():
    compiler, root, include = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    sys.path.insert(0, str(root / "shim" / "hook"))
    import generate

    prototypes = generate.read_prototypes(compiler, include)
    path = root / "shim" / "calls" / "submission.def"
    listed = generate.read_submissions(path)
    exceptions = re.findall(r'^NO_SUBMISSION\((\w+), "(.+)"\)$', path.read_text(), re.MULTILINE)
    excepted = {base for base, _ in exceptions}
    found = problems(prototypes, listed, excepted, generate.base_of)
    if len(excepted) != len(exceptions):
        found.append("an exception is listed twice")
    # The test sees what it is there for.
    newer = dict(prototypes, cuNewThing="CUstream hStream", cuMemcpyNew="void *p", cuGraphRun="CUgraphExec e")
    if len(problems(newer, listed, excepted, generate.base_of)) != len(found) + 3:
        found.append("a new function with a stream or an executable graph would not be noticed")
    forgotten = {name: kind for name, kind in listed.items() if name != "cuLaunchKernel_ptsz"}
    if len(problems(prototypes, forgotten, excepted, generate.base_of)) < len(found) + 1:
        found.append("a forgotten flavour would not be noticed")
    print("\n".join(found) if found else f"{len(listed)} submissions, {len(excepted)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
