"""The hook's tables and code against the CUDA headers of other versions, from PyPI.

usage: hook_headers.py COMPILER SOURCE_ROOT CACHE [--all]     --all: compile all of the shim, not only what the tables go into

Skipped (77) when PyPI can't be reached and nothing is in the cache.
"""
import pathlib
import subprocess
import sys
import zipfile

SETS = ["nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-runtime-cu12==12.6.77", "nvidia-cuda-runtime-cu12==12.8.90",
        "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-runtime==13.0.88", "nvidia-cuda-runtime==13.2.86",
        "nvidia-cuda-runtime==13.3.29", "nvidia-cuda-runtime==13.5.37"]
TABLES = ["shim/calls/capture.cpp", "shim/hook/doors.cpp", "shim/hook/entries.cpp", "shim/hook/abis.cpp", "shim/hook/query.cpp"]
FLAGS = ["-std=c++20", "-fsyntax-only", "-D__CUDA_API_VERSION_INTERNAL", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra",
         "-Werror"]


def headers_of(requirement, cache):
    """The folder with cuda.h; None when it can't be had."""
    folder = cache / requirement.replace("==", "-")
    if not folder.exists():
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d",
                               str(folder) + ".part", requirement], capture_output=True, text=True, timeout=120)
        wheels = list(pathlib.Path(str(folder) + ".part").glob("*.whl"))
        if done.returncode != 0 or not wheels:
            print(f"{requirement}: {done.stderr.strip().splitlines()[-1:] or 'no file'}")
            return None
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if "/include/" in name])
    found = list(folder.rglob("cuda.h"))
    return found[0].parent if found else None


def check(compiler, root, include, out, everything):
    """What is wrong with this set, as text; "" is nothing."""
    shim = root / "shim"
    steps = [[sys.executable, shim / "hook" / "generate.py", "--compiler", compiler, "--include", include, "--hooked",
              shim / "calls" / "hooked.def", "--submissions", shim / "calls" / "submission.def", "--out",
              out / "shim" / "hook" / "generated"],
             [sys.executable, root / "tests" / "unit" / "submission_test.py", compiler, root, include]]
    sources = [path for folder in ("hook", "calls", "gate", "client") for path in sorted((shim / folder).glob("*.cpp"))]
    for source in sources if everything else [root / name for name in TABLES]:
        steps.append([compiler, *FLAGS, f"-I{root}", f"-I{out}", "-isystem", include, source])
    for step in steps:
        done = subprocess.run([str(word) for word in step], capture_output=True, text=True)
        if done.returncode != 0:
            return f"{step[-1]}: {done.stdout}{done.stderr}"
    return ""


def main():
    compiler, root, cache = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    tried = failed = 0
    for requirement in SETS:
        include = headers_of(requirement, cache)
        if include is None:
            continue
        tried += 1
        trouble = check(compiler, root, include, cache / (requirement.replace("==", "-") + "-generated"), "--all" in sys.argv)
        failed += bool(trouble)
        print(f"{'FAIL' if trouble else 'ok  '} {requirement}{': ' + trouble if trouble else ''}", flush=True)
    if tried == 0:
        sys.exit(77)
    print(f"{tried} of {len(SETS)} sets, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
