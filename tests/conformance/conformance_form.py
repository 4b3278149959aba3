"""The program as a file: starts on any host with a driver and a libc from 2.31 on. Argument: program."""
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 31)
NEEDED = {"libc.so.6", "libcuda.so.1"}


def readelf(flag, program):
    return subprocess.run(["readelf", flag, program], capture_output=True, text=True, check=True).stdout


def main():
    program = sys.argv[1]
    problems = []
    dynamic = readelf("-dW", program)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    if needed != NEEDED:
        problems.append(f"needs {sorted(needed)}, not {sorted(NEEDED)}")
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        problems.append("has a run path: it would open the driver of this build")
    if re.search(r"BIND_NOW|\bNOW\b", dynamic):
        problems.append("binds at start: an older driver would keep it from starting")
    if re.search(r"\((INIT|FINI|INIT_ARRAY|FINI_ARRAY)\)", dynamic):
        problems.append("has a constructor or destructor, which its start file does not run")
    versions = {tuple(map(int, v)) for v in re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("-VW", program))}
    if not versions or max(versions) > NEWEST_GLIBC:
        problems.append(f"needs GLIBC versions up to {max(versions, default=None)}, allowed is {NEWEST_GLIBC}")
    for problem in problems:
        print(f"{program} {problem}")
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
