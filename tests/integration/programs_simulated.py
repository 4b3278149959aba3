"""trainer and replay on the simulated GPU alone: they are deterministic, and they notice what they are there to notice."""
import contextlib
import os
import signal
import subprocess

from harness import BUILD, PROGRAMS, SIMGPU, Stand, check, main

TRAINER = PROGRAMS / "trainer"
REPLAY = PROGRAMS / "replay"
SMALL_MODEL = ("--layers", 2, "--dim", 64, "--heads", 4, "--vocab", 512, "--batch", 4, "--context", 64)


@contextlib.contextmanager
def stand(**options):
    with Stand(**options) as made:
        made.alone = lambda *command, **more: made.run(*command, shim=False, **more)
        yield made


def generated(machine, *shape):
    path = machine.folder / "trace.csv.gz"
    subprocess.run([str(word) for word in (BUILD / "bin" / "vramd-trace", "generate", path, *shape)], check=True, timeout=60)
    return path


def values(output):
    """The "name value" lines of a report."""
    return {line.split()[0]: int(line.split()[1]) for line in output.splitlines()
            if len(line.split()) == 2 and line.split()[1].isdigit()}


def without_count(output):
    return [line for line in output.splitlines() if not line.startswith("allocations")]


def trainer_repeats_itself_bit_for_bit():
    with stand() as machine:
        first = machine.alone(TRAINER).stdout
        check(machine.alone(TRAINER).stdout == first, "two runs differ")
        lines = first.splitlines()
        check(len(lines) == 22 and lines[20].startswith("weights ") and len(lines[20].split()[1]) == 16, first)
        check(int(lines[21].split()[1]) > 1000, "too few allocations to exercise an allocator: " + lines[21])
        by_pool = machine.alone(TRAINER, "--alloc", "async").stdout
        check(without_count(by_pool) == without_count(first), "cudaMallocAsync changes the result")
        check(machine.alone(TRAINER, "--streams", 1).stdout.splitlines()[:21] == lines[:21], "a stream changes the result")
        check(machine.alone(TRAINER, "--seed", 2).stdout.splitlines()[20] != lines[20], "the seed changes nothing")


def trainer_repeats_itself_on_several_streams():
    with stand() as machine:
        for call in ("malloc", "async"):
            flags = (TRAINER, "--streams", 4, "--alloc", call, "--steps", 5)
            check(machine.alone(*flags).stdout == machine.alone(*flags).stdout, f"two runs differ with {call}")


def trainer_learns():
    with stand() as machine:
        losses = [float(line.split()[3]) for line in machine.alone(TRAINER).stdout.splitlines() if line.startswith("step")]
        check(4.0 < losses[0] < 4.6, f"first loss {losses[0]}: expected about log(64)")
        check(losses[-1] < 0.5 * losses[0], f"loss only fell from {losses[0]} to {losses[-1]}")


def trainer_gradients_are_right():
    with stand() as machine:
        odd_sizes = ("--layers", 1, "--dim", 30, "--heads", 3, "--context", 13, "--vocab", 37, "--batch", 3)
        for flags in ((), odd_sizes):
            report = machine.alone(TRAINER, "--check", *flags).stdout
            check(report.count(" ok\n") == len(report.splitlines()) >= 10, report)


def trainer_says_that_memory_is_short():
    with stand(capacity_mb=512) as machine:
        result = machine.alone(TRAINER, "--dim", 4096, "--batch", 1, expect=2)
        check("cuda error: cudaErrorMemoryAllocation" in result.stderr, result.stderr)


def trainer_refuses_bad_flags():
    with stand() as machine:
        for flags, message in ((("--dim", 65), "--dim 65 is not a multiple of --heads 4"),
                               (("--streams", 3), "--batch 4 is not a multiple of --streams 3"),
                               (("--steps", "-1"), "'-1' for --steps: expected a number from 0 to 1000000000"),
                               (("--lr", "nan"), "'nan' for --lr: expected a number above 0"),
                               (("--alloc", "calloc"), "expected one of malloc|async"),
                               (("--batch", 16384, "--context", 16384), "elements; expected at most 2147483647"),
                               (("--what",), "unknown flag '--what'"),
                               (("--seed",), "'--seed' needs a value")):
            result = machine.alone(TRAINER, *flags, expect=64)
            check(message in result.stderr and "usage: trainer" in result.stderr, result.stderr)


def programs_say_how_they_are_used():
    for program in ("saxpy", "runtime_checks", "trainer", "replay"):
        for flag in ("-h", "--help"):
            done = subprocess.run([PROGRAMS / program, flag], capture_output=True, text=True, timeout=60,
                                  env=dict(os.environ, LD_LIBRARY_PATH=str(SIMGPU), SIM_NAME="none", SIM_DIR="/nowhere"))
            check(done.returncode == 0 and done.stdout.startswith(f"usage: {program}"), f"{program} {flag}: {done}")


def replay_verifies_every_api():
    with stand() as machine:
        trace = generated(machine, *SMALL_MODEL, "--streams", 2)
        peaks = set()
        for api in ("malloc", "async", "driver", "vmm"):
            for flags in (("--touch", "edges"), ("--touch", "full"), ("--touch", "edges", "--verify", "late")):
                report = values(machine.alone(REPLAY, "--api", api, "--repeat", 2, *flags, trace).stdout)
                check(report["failures"] == 0 and report["verified-bytes"] > 0, report)
                check(report["allocations"] == report["frees"] > 1000, report)
                peaks.add(report["live-peak-bytes"])
        info = subprocess.run([BUILD / "bin" / "vramd-trace", "info", trace], check=True, capture_output=True, text=True)
        check(peaks == {values(info.stdout)["live-peak-bytes"]}, f"live peaks {peaks} differ from the trace's")


def replay_notices_corruption():
    with stand() as machine:
        trace = generated(machine, *SMALL_MODEL)
        for flags in (("--touch", "edges"), ("--touch", "full"), ("--touch", "edges", "--verify", "late"),
                      ("--touch", "edges", "--keep"), ("--touch", "full", "--api", "vmm")):
            result = machine.alone(REPLAY, "--plant-corruption", 500, *flags, trace, expect=1)
            check("replay: corrupt block 0 of 131072 bytes: first wrong byte at offset 0: " in result.stderr, result.stderr)
        machine.alone(REPLAY, "--plant-corruption", 500, trace, expect=64)  # needs --touch


def replay_stops_or_goes_on_when_memory_is_short():
    with stand(capacity_mb=2048) as machine:
        trace = generated(machine)  # needs 9 GB
        for api in ("malloc", "async", "driver", "vmm"):
            result = machine.alone(REPLAY, "--api", api, trace, expect=3)
            check("replay: out of memory at event " in result.stderr and "--oom continue" in result.stderr, result.stderr)
            check(values(result.stdout)["failures"] == 1, result.stdout)
            report = values(machine.alone(REPLAY, "--api", api, "--oom", "continue", "--limit-events", 2000, trace).stdout)
            check(report["failures"] > 1 and report["events"] == 2000, report)
            check(report["live-peak-bytes"] < 2048 << 20, report)
        report = values(machine.alone(REPLAY, "--scale", 0.1, "--touch", "edges", trace).stdout)
        check(report["failures"] == 0, report)


def replay_holds_until_told_to_end():
    with stand() as machine:
        trace = generated(machine, *SMALL_MODEL)

        def holding(*flags):
            job = machine.start(REPLAY, "--touch", "edges", "--hold", *flags, trace, shim=False)
            for line in job.stdout:
                if line == "holding\n":
                    return job
            check(False, "it ended without holding: " + job.stderr.read())

        def ends_with(job, status):
            job.wait(timeout=10)
            check(job.returncode == status, f"exit {job.returncode}: " + job.stderr.read())

        for flags, status in (((), 0), (("--keep",), 0), (("--plant-corruption", 700), 1)):
            job = holding(*flags)
            job.send_signal(signal.SIGTERM)
            ends_with(job, status)
            job = holding(*flags)
            job.stdin.close()
            ends_with(job, status)


def replay_refuses_bad_traces():
    with stand() as machine:
        bad = machine.folder / "bad.csv"
        bad.write_text("op,id,size,stream,t_us\na,0,1,0,0\nf,0,2,0,0\n")
        result = machine.alone(REPLAY, bad, expect=64)
        check(f"replay: {bad}:3: block 0 is freed with size 2; expected 1" in result.stderr, result.stderr)
        check("No such file" in machine.alone(REPLAY, "/nowhere.csv", expect=64).stderr, "a missing file")
        check("no TRACE given" in machine.alone(REPLAY, expect=64).stderr, "no file")


def static_programs_do_the_same():
    with stand() as machine:
        trainer, replay = PROGRAMS / "trainer_static", PROGRAMS / "replay_static"
        if not trainer.exists():  # built where the stand-in runtime is
            return
        check(machine.alone(trainer, "--steps", 3).stdout == machine.alone(TRAINER, "--steps", 3).stdout, "results differ")
        machine.alone(replay, "--touch", "edges", generated(machine, *SMALL_MODEL))


if __name__ == "__main__":
    main([trainer_repeats_itself_bit_for_bit, trainer_repeats_itself_on_several_streams, trainer_learns,
          trainer_gradients_are_right, trainer_says_that_memory_is_short, trainer_refuses_bad_flags,
          programs_say_how_they_are_used, replay_verifies_every_api, replay_notices_corruption,
          replay_stops_or_goes_on_when_memory_is_short, replay_holds_until_told_to_end, replay_refuses_bad_traces,
          static_programs_do_the_same])
