"""Each crime against a GPU is punished by the simulated one and told with its call site; clean programs are left in peace."""
import re

from harness import PROGRAMS, Stand, check, main

CRIMES = PROGRAMS / "crimes"
ILLEGAL_ADDRESS = 700
KERNEL = "kernel touched memory that its device may not"


def commit(name, **options):
    with Stand("tiny-1g", devices=2) as machine:
        return machine.run(CRIMES, name, shim=False, **options)


def answer(result):
    return int(re.search(r"^answer (\d+)$", result.stdout, re.M).group(1))


def clean_programs_are_left_in_peace():
    for name in ("clean", "peer-enabled"):
        check(answer(commit(name)) == 0, name)


def kernels_fault_and_the_error_sticks():
    for name, word in (("null", "poke wrote 0x0"), ("null-after-barrier", "poke_after_barrier wrote"), ("freed", "poke wrote"), ("beyond", "poke wrote"), ("no-access", "peek read"),
                       ("read-only", "poke wrote"), ("read-then-write", "peek_and_poke wrote"), ("peer", "poke wrote")):
        result = commit(name, misuse=True)
        check(answer(result) == ILLEGAL_ADDRESS, f"{name}: {result.stdout}")
        line = next(line for line in result.stderr.splitlines() if KERNEL in line)
        check(word.split()[0] in line and word.split()[1] in line, f"{name}: {line}")
        check(re.search(r" at \S+\+0x[0-9a-f]+", line), f"{name}: no call site: {line}")


def memory_without_protection_faults_too():
    for name in ("null", "freed", "no-access"):
        check(answer(commit(name, misuse=True, SIM_PROTECT=0)) == ILLEGAL_ADDRESS, name)


def memory_taken_from_a_running_kernel_is_noticed():
    result = commit("unmapped-under-kernel", misuse=True)
    check(answer(result) == ILLEGAL_ADDRESS, result.stdout)
    check("memory taken away while a kernel uses it" in result.stderr and "cuMemUnmap" in result.stderr, result.stderr)
    result = commit("access-withdrawn-under-kernel", misuse=True)
    check(answer(result) == ILLEGAL_ADDRESS, result.stdout)
    check("access withdrawn while a kernel uses the memory" in result.stderr, result.stderr)


def signals_that_are_none_of_the_cards_business_act_as_ever():
    for protect in (0, 1):
        commit("raise", expect=-11, SIM_PROTECT=protect)
        commit("chained-handler", expect=-11, SIM_PROTECT=protect)


def the_host_cannot_touch_device_memory():
    for name in ("host-read", "host-write"):
        result = commit(name, expect=-11, misuse=True)
        line = next(line for line in result.stderr.splitlines() if "host access to device memory" in line)
        check(re.search(r" at crimes\+0x[0-9a-f]+", line), line)
        check(answer(commit(name, SIM_PROTECT=0)) == 0, "without protection nothing closes the memory")


def a_double_free_is_told_and_strictness_ends_the_process():
    result = commit("double-free", misuse=True)
    check("free of memory that was not allocated: 1 time" in result.stderr, result.stderr)
    result = commit("double-free", expect=-6, misuse=True, SIM_STRICT=1)
    check("SIM_STRICT=1 ends the process here" in result.stderr, result.stderr)


if __name__ == "__main__":
    main([clean_programs_are_left_in_peace, kernels_fault_and_the_error_sticks, memory_without_protection_faults_too,
          memory_taken_from_a_running_kernel_is_noticed,
          signals_that_are_none_of_the_cards_business_act_as_ever, the_host_cannot_touch_device_memory,
          a_double_free_is_told_and_strictness_ends_the_process])
