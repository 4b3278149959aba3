"""The stand-in runtime on the simulated GPU: ordinary programs run in both topologies and with both runtime maps, and the
driver is loaded the way a genuine runtime loads it."""
import json
import os
import pathlib
import re
import subprocess

from harness import BUILD, PROGRAMS, SIMGPU, Stand, check, main

SAXPY = PROGRAMS / "saxpy"
CHECKS = PROGRAMS / "runtime_checks"
DOUBLE = PROGRAMS / "driver_double"  # a folder with a libcuda.so.1 that only answers look-ups
SOURCE = pathlib.Path(os.environ["VRAMD_SOURCE"])
GENUINE = pathlib.Path(os.environ.get("VRAMD_GENUINE_CUDART", "/nonexistent"))


def rows(path):
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return [fields for fields in lines if fields]


def alone(machine, *command, **options):
    return machine.run(*command, shim=False, **options)


def with_driver_double(machine, *command, expect, **extra):
    """Runs a program on the driver double; what it asked for, as (pointer, name, version, flags)."""
    log = machine.folder / "questions"
    log.write_text("")
    environment = machine.environment(shim=False, DOUBLE_LOG=log, **extra)
    environment["LD_LIBRARY_PATH"] = f"{DOUBLE}:{SIMGPU}"
    result = subprocess.run([str(c) for c in command], env=environment, text=True, capture_output=True, timeout=60)
    check(result.returncode == expect, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result, [line.split() for line in log.read_text().splitlines()]


def saxpy_shared():
    with Stand() as machine:
        check("ok: 1048576 elements, 1 times" in alone(machine, SAXPY).stdout, "default arguments")
        check("ok: 1 elements, 1 times" in alone(machine, SAXPY, 1).stdout, "one element")
        check("ok: 70001 elements, 50 times" in alone(machine, SAXPY, 70001, 50).stdout, "many launches")


def saxpy_static():
    with Stand() as machine:
        check("ok: 70001 elements" in alone(machine, f"{SAXPY}_static", 70001, 5, runtime=False).stdout, "saxpy_static")


def saxpy_refuses_bad_arguments():
    with Stand() as machine:
        for bad in ("0", "-1", "x", "12x", "", "99999999999999999999"):
            result = alone(machine, SAXPY, bad, expect=64)
            check(f"'{bad}' is not a number from 1" in result.stderr, result.stderr)


def no_driver_is_error_35():
    with Stand() as machine:
        for program in (SAXPY, CHECKS, f"{SAXPY}_static"):
            result = alone(machine, program, driver=False, expect=2)
            check("cuda error: cudaErrorInsufficientDriver (35): " in result.stderr, result.stderr)


def old_driver_is_error_35():
    with Stand() as machine:
        result, _ = with_driver_double(machine, SAXPY, expect=2, DOUBLE_VERSION=12090)
        check("cuda error: cudaErrorInsufficientDriver (35): " in result.stderr, result.stderr)


def failed_init_is_its_own_error():
    with Stand() as machine:
        result, _ = with_driver_double(machine, SAXPY, expect=2, DOUBLE_INIT=100)
        check("cuda error: cudaErrorNoDevice (100): no CUDA-capable device is detected" in result.stderr, result.stderr)


def look_ups_are_those_of_the_list():
    wanted = [(name, int(version), int(flags)) for name, version, flags, *_ in rows(SOURCE / "tools/simgpu/runtime/lookups.txt")]
    check(len(wanted) == 440, f"{len(wanted)} rows")
    for program in (SAXPY, f"{SAXPY}_static"):
        with Stand() as machine:
            _, asked = with_driver_double(machine, program, expect=2, DOUBLE_INIT=100)
            found = [(name, int(version), int(flags)) for _, name, version, flags in asked]
            check(found == wanted, f"{program}: first difference: " +
                  str(next(((f, w) for f, w in zip(found, wanted) if f != w), (len(found), len(wanted)))))
            pointers = "".join(pointer for pointer, *_ in asked)
            check(pointers == "A" * 4 + "C" * 436, f"{program}: asked through {pointers[:8]}...")


def all_checks(program, **options):
    """Runs every check; how often each driver function was called."""
    with Stand() as machine:
        path = machine.folder / "counts.json"
        result = alone(machine, program, SIM_COUNTS=path, misuse=True, **options)
        check(re.search(r"^\d\d checks, 0 wrong$", result.stdout, re.M), result.stdout)
        report = json.loads(path.read_text())
        check(report["unimplemented"] == 0, result.stderr)
        # Two checks free what they must not.
        check(set(report["misuse"]) <= {"free of memory that was not allocated"}, report["misuse"])
        return report["calls"]


def checks_shared():
    counts = all_checks(CHECKS)
    for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemsetD8_v2", "cuLaunchKernel"):
        check(counts.get(name, 0) > 0, f"{name} was never called: {counts}")


def checks_static():
    all_checks(f"{CHECKS}_static", runtime=False)


def checks_with_the_permuted_map():
    for program in (CHECKS, f"{CHECKS}_static"):
        counts = all_checks(program, SIM_RUNTIME_MAP="permuted")
        for name in ("cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemsetD8_v2", "cuLaunchKernel",
                     "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"):
            check(counts.get(name, 0) == 0, f"{program}: {name} was called under the permuted map")
        for name in ("cuMemAllocAsync", "cuMemFreeAsync", "cuMemcpyAsync", "cuMemsetD8Async", "cuLaunchKernelEx"):
            check(counts.get(name, 0) > 0, f"{program}: {name} was never called: {counts}")


def checks_with_per_thread_default_streams():
    for options in ({}, {"SIM_RUNTIME_MAP": "permuted"}):
        counts = all_checks(PROGRAMS / "runtime_checks_per_thread", **options)
        check(any(name.endswith("_ptsz") and count > 0 for name, count in counts.items()), f"no _ptsz call: {counts}")


def an_unknown_map_is_refused():
    with Stand() as machine:
        result = alone(machine, SAXPY, expect=-6, SIM_RUNTIME_MAP="permutated")
        check("SIM_RUNTIME_MAP=permutated is not a map; write standard or permuted" in result.stderr, result.stderr)


def exported(library):
    """Names with their version nodes."""
    output = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True,
                            text=True).stdout
    return {line.split()[2].replace("@@", "@") for line in output.splitlines() if line.split()[1] != "A"}


def exports_are_those_of_a_genuine_runtime():
    ours = exported(SIMGPU / "libcudart.so.13")
    check(all(re.fullmatch(r"(__)?cuda\w+@libcudart\.so\.13", name) for name in ours), f"foreign exports: {sorted(ours)[:5]}")
    if GENUINE.exists():
        genuine = exported(GENUINE)
        check(ours == genuine, f"missing: {sorted(genuine - ours)}; too many: {sorted(ours - genuine)}")


def static_programs_export_nothing_of_the_runtime():
    leaked = [name for name in exported(f"{SAXPY}_static") if "cuda" in name]
    check(not leaked, f"{leaked}")


if __name__ == "__main__":
    main([saxpy_shared, saxpy_static, saxpy_refuses_bad_arguments, no_driver_is_error_35, old_driver_is_error_35,
          failed_init_is_its_own_error, look_ups_are_those_of_the_list, checks_shared, checks_static,
          checks_with_the_permuted_map, checks_with_per_thread_default_streams, an_unknown_map_is_refused,
          exports_are_those_of_a_genuine_runtime, static_programs_export_nothing_of_the_runtime])
