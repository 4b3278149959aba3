"""Checks libvramd.so as a file: what it needs, what it shows, and that nothing of it runs when a program starts."""
import argparse
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 31)
OWN_EXPORTS = {"dlsym", "dlvsym", "vramd_hook_statistics", "vramd_hook_handed_out", "vramd_gate_close", "vramd_gate_open",
               "vramd_gate_waiting"}
START_AND_END = ("(INIT)", "(FINI)", "(INIT_ARRAY)", "(FINI_ARRAY)", "(PREINIT_ARRAY)")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def defined(library):
    names = set()
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        names.add(line.split()[-1])
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("entries", help="entries.inc of the same build")
    parser.add_argument("--stub", help="the toolkit's stub libcuda.so, whose names must all be there")
    options = parser.parse_args()
    problems = []

    dynamic = run("readelf", "-dW", options.library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    if not needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"} or "libc.so.6" not in needed:
        problems.append(f"needs {sorted(needed)}: a missing library would keep every program from starting; allowed is libc only")
    problems += [f"has {tag}: code of ours would run in every process; remove the object with a constructor or destructor"
                 for tag in START_AND_END if tag in dynamic]
    if "NODELETE" not in dynamic:
        problems.append("can be unloaded while pointers into it are in use: link with -z nodelete")
    if "TEXTREL" in dynamic:
        problems.append("has text relocations")
    if re.search(r"GNU_STACK.*RWE", run("readelf", "-lW", options.library)):
        problems.append("wants an executable stack")

    with open(options.entries, encoding="utf-8") as file:
        expected = set(re.findall(r"^ENTRY\((\w+)\)", file.read(), re.MULTILINE)) | OWN_EXPORTS
    exported = defined(options.library)
    if exported != expected:
        problems.append(f"exports too much: {sorted(exported - expected)}, too little: {sorted(expected - exported)}")
    if options.stub:
        driver = {name.split("@")[0] for name in defined(options.stub) if name.startswith("cu")}
        if driver - exported:
            problems.append(f"lacks driver functions that programs can link to: {sorted(driver - exported)}")

    for line in run("objdump", "-T", options.library).splitlines():
        version = re.search(r"\(?GLIBC_(\d+)\.(\d+)(?:\.\d+)?\)?\s+(\S+)$", line)
        if version and (int(version[1]), int(version[2])) > NEWEST_GLIBC:
            problems.append(f"needs {version[3]} of GLIBC_{version[1]}.{version[2]}, the floor is 2.31: call the kernel (syscall), or "
                            "bind the older version with .symver")

    for problem in problems:
        print(f"{options.library} {problem}")
    print(f"{len(exported)} exports, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
