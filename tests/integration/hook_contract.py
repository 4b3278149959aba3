#!/usr/bin/env python3
"""What NVIDIA's libraries look up of the driver, and whether vramd's functions were handed out for it.

usage: hook_contract [--json FILE] [--only LIBRARY] [--plant NAME]

Each library is loaded in a process of its own with libvramd.so preloaded, on the simulated driver, and one function that starts its
CUDA runtime is called. The runtime resolves all its driver functions and then refuses to run, since it authenticates the driver; until
then everything has been looked up. The driver tells what it was asked, the shim what it handed out: a hooked ABI that was asked for
and not handed out is missed. --json -: to standard output. --plant: takes the name for hooked (a negative control). Exit: 0 nothing is
missed, 1 something is, 77 no library of the toolkit is here.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CASES = [  # name, library, function, arguments
    ("cudart", "libcudart.so.13", "cudaGetDeviceCount", "count"),
    ("cublas", "libcublas.so.13", "cublasCreate_v2", "handle"),
    ("cublasLt", "libcublasLt.so.13", "cublasLtCreate", "handle"),
    ("cudnn", "libcudnn.so.9", "cudnnCreate", "handle"),
    ("nccl", "libnccl.so.2", "ncclCommInitAll", "communicator"),
    ("cufft", "libcufft.so.12", "cufftPlan1d", "plan"),
    ("cusparse", "libcusparse.so.12", "cusparseCreate", "handle"),
    ("cusolver", "libcusolver.so.12", "cusolverDnCreate", "handle"),
    ("curand", "libcurand.so.10", "curandCreateGenerator", "handle,100"),
]
# ABIs of hooked names that are not hooked, with the reason.
EXCEPTIONS = {
    "cuMemAlloc": "32-bit device pointers: the ABI of CUDA 3.1", "cuMemAllocPitch": "32-bit device pointers",
    "cuMemFree": "32-bit device pointers", "cuMemGetInfo": "32-bit sizes", "cuDeviceTotalMem": "32-bit sizes",
    "cuMemGetAddressRange": "32-bit device pointers", "cuCtxDestroy": "the ABI of CUDA 3.1",
}
# Entry points of the kinds that vramd may have to know one day.
OF_INTEREST = re.compile(r"cu(Mem|Launch|Graph|Stream|Event|Ctx|Ipc|DevicePrimaryCtx|Pointer|Array|Multicast|GreenCtx)")
LOOKUP = re.compile(r"simgpu: lookup: (\S*) (\d+) (\d+) -> (\S+)")


def base_of(name):
    return re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", name)


def measure(command, folders, shim):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as machine:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VRAMD_", "SIM_", "CUDA_", "LD_"))}
        log = pathlib.Path(machine, "driver.log")
        environment = dict(clean, SIM_DIR=machine, SIM_NAME="contract", SIM_PROFILE="tiny-1g", SIM_TRACE="1", SIM_LOG=str(log),
                           VRAMD_SOCKET="/nonexistent", LD_PRELOAD=str(shim), LD_LIBRARY_PATH=":".join(map(str, folders)))
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=120)
        return done, log.read_text() if log.exists() else ""


def judge(output, log, planted):
    facts = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in output.splitlines()
             if line.startswith(("result", "dlsym", "queries"))}
    handed_out = {name: int(count) for name, count in re.findall(r"^hooked (\S+) (\d+)$", output, re.M)}
    if planted:
        handed_out.setdefault(planted, 0)
    asked = {exported for *_, exported in LOOKUP.findall(log) if exported != "nothing"}
    bases = {base_of(name) for name in handed_out}
    missed = sorted(name for name in asked if handed_out.get(name) == 0)
    missed += sorted(name for name in asked if name not in handed_out and base_of(name) in bases and name not in EXCEPTIONS)
    if facts["dlsym"][0] != facts["dlsym"][1]:
        missed.append(f"{facts['dlsym'][0] - facts['dlsym'][1]} dlsym look-ups of hooked names")
    return {"first_error": facts["result"][0], "dlsym": facts["dlsym"][0], "lookups": len(LOOKUP.findall(log)),
            "of_unknown_abi": facts["queries"][2], "ours": sorted(name for name, count in handed_out.items() if count),
            "missed": missed,
            "not_hooked": sorted(name for name in asked if name not in handed_out and OF_INTEREST.match(name))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", choices=["cudart_static"] + [case[0] for case in CASES])
    parser.add_argument("--plant", metavar="NAME")
    options = parser.parse_args()
    build = pathlib.Path(os.environ.get("VRAMD_BUILD") or pathlib.Path(__file__).resolve().parent.parent)
    toolkit = pathlib.Path(os.environ.get("VRAMD_TOOLKIT_LIB", "/usr/local/cuda/lib64"))
    shim, child = build / "lib" / "libvramd.so", build / "tests" / "hook_contract_child"
    folders = [toolkit, build / "simgpu"]  # the genuine runtime, not the stand-in that lies beside the driver

    commands = [(name, [child, library, function, arguments]) for name, library, function, arguments in CASES]
    static = build / "tests" / "hook_contract_static"
    if static.exists():
        commands.insert(0, ("cudart_static", [static]))
    results = {}
    for name, command in commands:
        if options.only in (None, name):
            done, log = measure(command, folders, shim)
            if done.returncode == 77:
                print(f"{name}: not here", file=sys.stderr)
            elif done.returncode != 0:
                sys.exit(f"{name}: exit {done.returncode}: {done.stdout}{done.stderr}")
            else:
                results[name] = judge(done.stdout, log, options.plant)
    if not results:
        sys.exit(77)
    text = json.dumps(results, indent=2)
    if options.json == "-":
        print(text)
    else:
        if options.json:
            pathlib.Path(options.json).write_text(text + "\n")
        for name, result in results.items():
            print(f"{name}: {result['dlsym']} dlsym, {result['lookups']} look-ups, {len(result['ours'])} functions of ours, "
                  f"{len(result['not_hooked'])} of interest not hooked, missed: {', '.join(result['missed']) or 'none'}")
    sys.exit(1 if any(result["missed"] for result in results.values()) else 0)


if __name__ == "__main__":
    main()
