"""Programs that have nothing to do with CUDA do the same with libvramd.so preloaded: output, errors, exit code, files.

usage: inert.py          every program that is here, with the simulated driver on the library path and without
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["VRAMD_BUILD"])
SHIM = BUILD / "lib" / "libvramd.so"
NVCC = os.environ.get("VRAMD_NVCC", "")
HELLO = "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n"
MAKEFILE = "all:\n\t@echo made $(words $(wildcard *))\n"
PTX = ".version 7.0\n.target sm_86\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n"
# name, command in a folder that holds hello.c, Makefile, empty.cu, nothing.ptx, lines.txt
CASES = [
    ("true", "true"),
    ("false", "false"),
    ("bash", "bash -c 'echo a | cat; (exit 3); echo $?; for i in 1 2 3; do /bin/true; done'"),
    ("python3", "python3 -c 'import json, socket, subprocess, threading; print(subprocess.run([\"echo\", \"x\"]).returncode)'"),
    ("git", "git init -q repo && cd repo && git add -A && git -c user.name=a -c user.email=b commit -q --allow-empty -m c "
            "--date=2026-01-01T00:00:00 && git log --format=%s"),
    ("gcc", "gcc -o hello hello.c && ./hello"),
    ("g++", "g++ -x c++ -O2 -c -o hello.o hello.c && size -A hello.o | head -1"),
    ("ld", "gcc -c -o part.o hello.c && ld -r -o whole.o part.o && nm whole.o"),
    ("make", "make"),
    ("cmake", "cmake --version"),
    ("perl", "perl -e 'print join(\",\", map { $_ * $_ } 1..5), \"\\n\"; exit 7'"),
    ("awk", "awk '{ s += $1 } END { print s }' lines.txt"),
    ("sort", "sort -n -r lines.txt | head -3"),
    ("tar", "tar cf - lines.txt hello.c | tar tf -"),
    ("find", "find . -name '*.c' -exec cat {} +"),
    ("xargs", "head -50 lines.txt | xargs -n 5 -P 4 echo | wc -l"),
    ("ssh", "ssh -V"),
    ("gdb", "gdb -batch -ex 'print 6*7'"),
    ("java", "java -version"),
    ("node", "node -e 'console.log(1 + 1)'"),
    ("nvcc", f"{NVCC} -arch=sm_86 -cubin -o empty.cubin empty.cu && wc -c < empty.cubin"),
    ("ptxas", "ptxas -arch=sm_86 -o nothing.cubin nothing.ptx && wc -c < nothing.cubin"),
]


def prepare(folder):
    (folder / "hello.c").write_text(HELLO)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "empty.cu").write_text("__global__ void nothing() {}\n")
    (folder / "nothing.ptx").write_text(PTX)
    (folder / "lines.txt").write_text("".join(f"{i * 7919 % 100003}\n" for i in range(100000)))


def run(command, preload, driver):
    """What it printed, its exit code, and the files it left."""
    with tempfile.TemporaryDirectory(prefix="vramd-inert-", dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        prepare(folder)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("VRAMD_", "SIM_", "LD_"))}
        environment.update(HOME=name, TMPDIR=name, XDG_RUNTIME_DIR=name, SIM_DIR=name)
        if NVCC:
            environment["PATH"] += ":" + os.path.dirname(NVCC)
        if driver:
            environment["LD_LIBRARY_PATH"] = str(BUILD / "simgpu")
        if preload:
            environment["LD_PRELOAD"] = str(preload)
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL)
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".git/" not in str(path))
        return (done.returncode, done.stdout.replace(name, "FOLDER"), done.stderr.replace(name, "FOLDER"), files)


def main():
    failed, here = 0, 0
    for name, command in CASES:
        if not shutil.which(NVCC if name == "nvcc" else name) and not (name == "ptxas" and NVCC):
            print(f"     {name}: not here")
            continue
        here += 1
        for driver in (False, True):
            plain, preloaded = run(command, None, driver), run(command, SHIM, driver)
            same = plain == preloaded
            failed += not same
            print(f"{'ok  ' if same else 'FAIL'} {name}{', with a driver' if driver else ''}" +
                  ("" if same else f"\n  without: {plain}\n  with: {preloaded}"), flush=True)
    # The control: what is not inert is seen.
    loud = run("true", os.environ["VRAMD_TEST_LOUD_LIBRARY"], False)
    if loud == run("true", None, False):
        failed += 1
        print("FAIL a library that prints at its start was not noticed")
    print(f"{here} programs, {failed} failures")
    sys.exit(1 if failed or here < 10 else 0)


if __name__ == "__main__":
    main()
