#!/usr/bin/env python3
"""Unmodified CUDA programs under shim and daemon: same results, memory shared between jobs, limits, deaths."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support.harness import ACTIVE, BUILD, PROGRAMS, Stand, check, main, wait_for, wait_for_line  # noqa: E402

MiB = 1 << 20
TRAINER = [PROGRAMS / "trainer", "--steps", "4"]


def write_trace(path, blocks, size):
    """A trace that allocates `blocks` of `size` bytes and frees them."""
    lines = ["op,id,size,stream,t_us"]
    lines += [f"a,{i},{size},0,{i}" for i in range(blocks)]
    lines += [f"f,{i},{size},0,{blocks + i}" for i in range(blocks)]
    path.write_text("\n".join(lines) + "\n")
    return path


def results_are_the_same_in_every_mode():
    with Stand() as stand:
        plain = stand.run(*TRAINER, shim=False).stdout
        check("loss" in plain and "weights" in plain, "the trainer printed no result:\n" + plain)
        check(stand.run(*TRAINER).stdout == plain, "without a daemon the result differs")
        stand.start_daemon()
        under_daemon = stand.run(*TRAINER)
        check(under_daemon.stdout == plain, "under the daemon the result differs")
        check("source daemon" in under_daemon.stderr, "not served by the daemon: " + under_daemon.stderr)
        permuted = stand.run(*TRAINER, SIM_RUNTIME_MAP="permuted", active=True)
        check(permuted.stdout == plain, "with the permuted runtime map the result differs")
        for environment in ({"VRAMD_DISABLE": "1"}, {"VRAMD_MODE": "off"}):
            check(stand.run(*TRAINER, active=False, **environment).stdout == plain, f"{environment}: the result differs")
        observed = stand.run(*TRAINER, active=False, VRAMD_MODE="observe")
        check(observed.stdout == plain and "mode observe" in observed.stderr, "mode observe: " + observed.stderr)


def runtime_checks_pass_under_the_shim():
    with Stand() as stand:
        stand.start_daemon()
        stand.run(PROGRAMS / "runtime_checks", misuse=True)  # two of its checks free what they must not
        stand.run(PROGRAMS / "saxpy")
        stand.run(PROGRAMS / "runtime_checks", misuse=True, SIM_RUNTIME_MAP="permuted")


def without_a_driver_there_is_a_clean_error():
    with Stand() as stand:
        for shim in (False, True):
            result = stand.run(PROGRAMS / "saxpy", shim=shim, driver=False, expect=2, active=False)
            check("cudaErrorInsufficientDriver" in result.stderr or "cudaErrorNoDevice" in result.stderr,
                  f"shim {shim}: no CUDA error named: {result.stderr}")


def the_pool_backs_every_allocation_of_the_program():
    with Stand() as stand:
        stand.start_daemon()
        counts = stand.folder / "counts.json"
        stand.run(*TRAINER, SIM_COUNTS=counts)
        calls = json.loads(counts.read_text())["calls"]
        check(calls.get("cuMemAlloc_v2", 0) == 0, f"native allocations: {calls}")
        check(calls.get("cuMemCreate", 0) == 0, f"chunks created by the program's own process: {calls}")
        check(calls.get("cuMemImportFromShareableHandle", 0) > 0, f"no chunk was imported: {calls}")


def a_second_job_is_served_from_what_the_first_gave_back():
    with Stand(capacity_mb=2048) as stand:
        stand.start_daemon({"version": 1, "pool": {"retain": "100%"}})
        trace = write_trace(stand.folder / "trace.csv", 12, 64 * MiB)
        first = stand.run(PROGRAMS / "replay", trace, "--touch", "edges")
        check("(0 recycled)" in first.stderr, "the first job's chunks are not new: " + first.stderr)
        device = stand.device()
        check(device["leased"] == 0 and device["cached"] == 12 * 64 * MiB, f"not all came back clean: {device}")
        second = stand.run(PROGRAMS / "replay", trace, "--touch", "edges")
        check("24 chunks from the daemon (24 recycled)" in second.stderr, "not recycled: " + second.stderr)
        check(stand.status()["grants"]["hit"] == 24, f"grants: {stand.status()['grants']}")


def two_jobs_at_once_share_one_card():
    with Stand(capacity_mb=3072) as stand:  # two times 700 MiB and three contexts
        stand.start_daemon()
        trace = write_trace(stand.folder / "trace.csv", 10, 70 * MiB)
        jobs = [stand.start(PROGRAMS / "replay", trace, "--touch", "edges", "--repeat", "3") for _ in range(2)]
        for job in jobs:
            out, err = job.communicate(timeout=120)
            check(job.returncode == 0 and ACTIVE in err, f"exit {job.returncode}: {out}\n{err}")
        check(stand.device()["leased"] == 0, f"leased after the end: {stand.device()}")


def killed_jobs_lose_nothing():
    with Stand(capacity_mb=1536) as stand:  # 512 MiB and two contexts: the next job needs the bytes of the last
        stand.start_daemon()
        trace = write_trace(stand.folder / "trace.csv", 8, 64 * MiB)
        keep = stand.folder / "keep.csv"
        keep.write_text("\n".join(trace.read_text().splitlines()[:9]) + "\n")  # allocations only
        free_before = stand.device()["free"]
        for _ in range(3):
            job = stand.start(PROGRAMS / "replay", keep, "--touch", "edges", "--hold")
            wait_for_line(job, "holding")
            check(stand.device()["leased"] == 512 * MiB, f"leased: {stand.device()}")
            job.send_signal(signal.SIGKILL)
            job.wait()
            took = wait_for(lambda: stand.device()["leased"] == 0 and stand.device()["stranded"] == 0
                            and stand.device()["free"] >= free_before - 64 * MiB, 1, "the bytes of the killed job are back")
            check(took < 1, f"took {took} s")
            job.communicate()
        # All of it can be had again.
        result = stand.run(PROGRAMS / "replay", trace, "--touch", "edges")
        check("(0 recycled)" in result.stderr, "chunks of a killed job were handed on: " + result.stderr)


def limits_hold_and_change_with_the_policy():
    with Stand(capacity_mb=2048) as stand:
        def policy(limit):
            return {"version": 1, "sessions": [{"match": {"command": "replay"}, "limit": limit}]}

        stand.start_daemon(policy("256MiB"))
        trace = write_trace(stand.folder / "trace.csv", 8, 64 * MiB)
        result = stand.run(PROGRAMS / "replay", trace, expect=3)
        check("out of memory" in result.stderr + result.stdout, "no word of memory: " + result.stderr)
        stand.reload(policy("640MiB"))
        stand.run(PROGRAMS / "replay", trace)
        stand.run(PROGRAMS / "replay", trace, expect=3, VRAMD_LIMIT="256MiB")
        bad = stand.run(PROGRAMS / "replay", trace, VRAMD_LIMIT="-1")
        check("write for example 12GiB" in bad.stderr, "bad limit not explained: " + bad.stderr)
        # Without a daemon the environment's limit holds too.
        stand.daemon.terminate()
        stand.daemon.wait(5)
        stand.run(PROGRAMS / "replay", trace, expect=3, VRAMD_LIMIT="256MiB")
        stand.run(PROGRAMS / "replay", trace)


def a_refusal_by_the_limit_is_seen_by_job_and_administrator():
    with Stand(capacity_mb=2048) as stand:
        stand.start_daemon({"version": 1, "sessions": [{"match": {"any": True}, "limit": "64MiB"}]})
        for size in (128 * MiB, 40 * MiB):  # above the limit at once, and in the second block
            trace = write_trace(stand.folder / "trace.csv", 2, size)
            before = stand.metric("vramd_limit_refusals_total")
            result = stand.run(PROGRAMS / "replay", trace, expect=3)
            check("out of memory by the limit of 64 MiB" in result.stderr, "the job is not told why: " + result.stderr)
            check(stand.metric("vramd_limit_refusals_total") > before, "the refusal is not counted")
        check("above its limit of 64 MiB" in stand.log.read_text(), "the daemon's log does not say it")
        # In mode observe nothing is limited, and so nothing is refused.
        stand.reload({"version": 1, "mode": "observe", "sessions": [{"match": {"any": True}, "limit": "64MiB"}]})
        before = stand.metric("vramd_limit_refusals_total")
        stand.run(PROGRAMS / "replay", trace, active=False)
        check(stand.metric("vramd_limit_refusals_total") == before, "a refusal is counted that was none")


def a_large_free_reaches_the_daemon():
    with Stand(capacity_mb=20000) as stand:
        stand.start_daemon()
        trace = stand.folder / "trace.csv"
        size = 16000 * MiB  # not touched; twice that does not fit
        trace.write_text("op,id,size,stream,t_us\n" + "".join(f"a,{i},{size},0,0\nf,{i},{size},0,0\n" for i in range(3)))
        result = stand.run(PROGRAMS / "replay", trace, "--hold")
        check(", 0 of its own," in result.stderr, "the daemon was lost: " + result.stderr)
        check(stand.device()["leased"] == 0, f"leased after the end: {stand.device()}")


def what_fails_on_our_way_alone_is_allocated_natively():
    with Stand() as stand:
        plain = stand.run(*TRAINER, shim=False).stdout
        stand.start_daemon()
        for call in ("cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"):
            result = stand.run(*TRAINER, SIM_FAIL=f"{call}:1=999")
            check(result.stdout == plain, f"{call} fails once: the result differs")
            check(f"{call} failed (999)" in result.stderr, f"{call}: no warning: {result.stderr}")
        # At random, again and again. A chunk that could not be imported is nobody's any more.
        calls = ("cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemUnmap")
        trace = write_trace(stand.folder / "trace.csv", 8, 70 * MiB)
        for seed in range(4):
            result = stand.run(PROGRAMS / "replay", trace, "--touch", "edges", "--repeat", "4",
                               SIM_FAIL=",".join(f"{call}:p0.2=999" for call in calls), SIM_SEED=seed)
            check("injected" in result.stderr, f"seed {seed}: nothing failed")
        wait_for(lambda: stand.device()["leased"] == 0, 1, "nothing is leased after the end")
        stand.run(*TRAINER)


def the_same_bytes_go_over_the_link():
    with Stand() as stand:
        stand.start_daemon()
        counts = stand.folder / "counts.json"
        elements = 1 << 20  # two arrays of four bytes each go to the device, one comes back
        for options in ({"shim": False}, {}, {"SIM_TIME": 1, "SIM_LAUNCH_US": 500}):
            stand.run(PROGRAMS / "saxpy", elements, SIM_COUNTS=counts, **options)
            moved = json.loads(counts.read_text())["moved"]
            check(moved == {"to_device": 8 * elements, "to_host": 4 * elements}, f"{options}: moved {moved}")


def the_daemon_may_die_under_a_job():
    with Stand(capacity_mb=2048) as stand:
        stand.start_daemon()
        trace = write_trace(stand.folder / "trace.csv", 8, 64 * MiB)
        keep = stand.folder / "keep.csv"
        keep.write_text("\n".join(trace.read_text().splitlines()[:9]) + "\n")
        job = stand.start(PROGRAMS / "replay", keep, "--touch", "edges", "--hold")
        wait_for_line(job, "holding")
        stand.daemon.kill()
        stand.daemon.wait()
        out, err = job.communicate("", timeout=30)  # end of input: the job verifies and frees
        check(job.returncode == 0, f"exit {job.returncode}: {out}\n{err}")
        # A new daemon on the same socket serves new jobs, and the card is whole again.
        stand.start_daemon()
        stand.run(PROGRAMS / "replay", trace, "--touch", "edges")


def stock_tools_are_not_disturbed():
    with Stand() as stand:
        for command in (["/bin/true"], ["bash", "-c", "exit 0"], [sys.executable, "-c", "print(1)"]):
            for driver in (True, False):
                result = stand.run(*command, driver=driver, runtime=False, active=False)
                check("vramd" not in result.stderr, f"{command}: {result.stderr}")


main([results_are_the_same_in_every_mode, runtime_checks_pass_under_the_shim, without_a_driver_there_is_a_clean_error,
      the_pool_backs_every_allocation_of_the_program, a_second_job_is_served_from_what_the_first_gave_back,
      two_jobs_at_once_share_one_card, killed_jobs_lose_nothing, limits_hold_and_change_with_the_policy,
      a_refusal_by_the_limit_is_seen_by_job_and_administrator, a_large_free_reaches_the_daemon,
      what_fails_on_our_way_alone_is_allocated_natively, the_same_bytes_go_over_the_link,
      the_daemon_may_die_under_a_job, stock_tools_are_not_disturbed])
