"""vramctl calibrate: sees every submission of the stand-in runtime, and says so when a runtime's submissions pass vramd by."""
import json
import subprocess

from harness import BUILD, SIMGPU, Stand, check, main

BLIND = BUILD / "tests" / "libblind_runtime.so"


def calibrate(machine, *arguments, expect=0, **environment):
    result = subprocess.run([str(BUILD / "bin" / "vramctl"), "calibrate", *map(str, arguments)], text=True, capture_output=True,
                            env=dict(machine.base, LD_LIBRARY_PATH=str(SIMGPU), **environment), timeout=60)
    check(result.returncode == expect, f"exit {result.returncode}: {result.stdout}{result.stderr}")
    check("simgpu: misuse" not in result.stderr, result.stderr)
    return result


def every_submission_of_the_runtime_is_seen():
    for runtime_map in ("standard", "permuted"):
        with Stand("tiny-1g") as machine:
            facts = json.loads(calibrate(machine, "--json", SIM_RUNTIME_MAP=runtime_map).stdout)
            check(facts["submissions_seen"] is True and len(facts["calls"]) >= 16, facts)
            check(all(row["gated"] is True for row in facts["calls"]), facts)


def submissions_that_pass_by_are_told():
    with Stand("tiny-1g") as machine:
        facts = json.loads(calibrate(machine, "--json", "--runtime", BLIND, expect=1).stdout)
        check(facts["submissions_seen"] is False, facts)
        by_name = {row["call"]: row for row in facts["calls"]}
        check(by_name["cudaLaunchKernel"]["gated"] is False, by_name)
        check("there is no cudaGraphInstantiateWithFlags" not in str(by_name["cudaMemset"]), by_name)
        check("error" in by_name["cudaMemcpy2D"], by_name)
        text = calibrate(machine, "--runtime", BLIND, expect=1).stdout
        check("NOT SEEN" in text and "submissions_seen: no" in text, text)


def what_cannot_be_measured_is_said():
    with Stand("tiny-1g") as machine:
        said = calibrate(machine, "--runtime", "/nonexistent/libcudart.so", expect=1).stderr
        check("/nonexistent/libcudart.so" in said and "--runtime" in said, said)
        said = calibrate(machine, expect=1, VRAMD_LIBRARY=str(BUILD / "tests" / "libvramd_test_empty_library.so")).stderr
        check("libvramd.so is not preloaded" in said, said)


if __name__ == "__main__":
    main([every_submission_of_the_runtime_is_seen, submissions_that_pass_by_are_told, what_cannot_be_measured_is_said])
