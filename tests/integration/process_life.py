#!/usr/bin/env python3
"""The lives of processes under the preloaded shim: how they begin, multiply, are disturbed and end.

Every job runs without the shim, then with it and no daemon, then with it and a daemon. It must print and answer the same, end in
about the same time, say at most one line of ours, misuse nothing, and leave nothing leased. `process_life.py --programs` runs what
programs do, `--surroundings` what is done to them; names run single cases.
"""
import contextlib
import functools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support import harness  # noqa: E402
from tests.support.harness import BUILD, PROGRAMS, SHIM, SIMGPU, Stand, check, wait_for, wait_for_line  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WORKER = PROGRAMS / "life_worker"
MiB = 1 << 20
NOBODY = 65534
SLOWER = 1.0  # seconds that a job may take longer under the shim, beyond twice its time without


class Slow(harness.Failure):
    """Took too long. May be somebody else's doing, so such a case runs again."""


def patient(test):
    @functools.wraps(test)
    def again():
        for _ in range(2):
            with contextlib.suppress(Slow):
                return test()
        return test()
    return again


class Life(Stand):
    """A stand whose jobs run as users run them: with the log at its default."""

    def environment(self, shim=True, socket=None, preload=None, **extra):
        env = super().environment(shim=shim, **extra)
        del env["VRAMD_LOG"]
        if socket is not None:
            env["VRAMD_SOCKET"] = str(socket)
        if preload is not None:  # the whole list; SHIM stands for the shim
            env["LD_PRELOAD"] = ":".join(str(p) for p in preload if shim or p != SHIM)
        return env

    def leased(self):
        return sum(device["leased"] for device in self.status()["devices"])

    def grants(self):
        grants = self.status()["grants"]
        return grants["hit"] + grants["miss"]


def run(stand, command, shim, environment, **options):
    """Runs a job; exit code, stdout, stderr, seconds."""
    env = stand.environment(shim=shim, **environment)
    env.setdefault("LIFE_SHIM", "1" if shim else "0")
    begin = time.monotonic()
    try:
        done = subprocess.run([str(c) for c in command], env=env, text=True, capture_output=True, timeout=20,
                              stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired as late:
        raise harness.Failure(f"{' '.join(map(str, command))}: hangs, shim {shim}: {late.stdout}\n{late.stderr}") from None
    return done.returncode, done.stdout, done.stderr, time.monotonic() - begin


def check_lines(text, stderr, most=1):
    ours = [line for line in stderr.splitlines() if line.startswith("vramd")]
    check(len(ours) <= most, f"{text}: {len(ours)} lines of ours: {ours}")
    check("simgpu: misuse:" not in stderr, f"{text}: misuse of the driver: {stderr}")


def judge(text, plain, under, most=1, slower=SLOWER):
    check(under[0] == plain[0], f"{text}: exit {under[0]}, without the shim {plain[0]}: {under[1]}{under[2]}")
    check(under[1] == plain[1], f"{text}: prints\n{under[1]}without the shim\n{plain[1]}{under[2]}")
    check_lines(text, under[2], most)
    if under[3] > 2 * plain[3] + slower:
        raise Slow(f"{text}: took {under[3]:.2f} s, without the shim {plain[3]:.2f} s")


def same(stand, *command, expect=0, most=1, served=True, slower=SLOWER, modes=("no daemon", "daemon"), options=None,
         **environment):
    """The job under the shim is the job without it. served: whether the daemon must have lent it something."""
    options = options or {}
    command = command if pathlib.Path(str(command[0])).is_absolute() else (WORKER, *command)
    text = " ".join(str(c) for c in command[-3:])
    plain = run(stand, command, False, environment, **options)
    check(plain[0] == expect, f"{text}: exit {plain[0]} without the shim: {plain[1]}{plain[2]}")
    for mode in modes:
        where = dict(environment)
        if mode == "no daemon":
            where["socket"] = stand.folder / "nobody.sock"
        granted = stand.grants() if mode == "daemon" else 0
        under = run(stand, command, True, where, **options)
        judge(f"{text} ({mode})", plain, under, most, slower)
        if mode == "daemon":
            check(not served or stand.grants() > granted, f"{text}: the daemon lent it nothing")
    if stand.daemon:
        wait_for(lambda: stand.leased() == 0, 1, f"nothing is leased after {text}")
    return plain


_stand = None


def shared():
    """One stand with a daemon for all cases that leave it as it was."""
    global _stand
    if _stand is None:
        _stand = Life()
        _stand.start_daemon()
    return _stand


# --- processes ---

def fork_after_cuinit():
    same(shared(), "fork_after")
    same(shared(), "fork_after", 1)


def fork_before_cuinit():
    same(shared(), "fork_before")


def vfork_and_exec():
    same(shared(), "vfork_exec")


def posix_spawn_of_jobs():
    same(shared(), "spawn")


def clone_without_fork_handlers():
    same(shared(), "raw_clone")


def exec_of_itself():
    for load in (0, 1):
        same(shared(), "exec_self", load)


def python_multiprocessing():
    for method in ("spawn", "fork", "forkserver"):
        same(shared(), sys.executable, HERE / "life_multiprocessing.py", method)


# --- threads ---

def threads_end_while_others_allocate():
    same(shared(), "thread_ends")


def two_hundred_threads():
    same(shared(), "work", 200, 2)


def small_stacks():
    same(shared(), "work", 8, 30, 65536)


def cancelled_threads():
    same(shared(), "cancelled", 0)
    same(shared(), "cancelled", 1)


def libraries_come_and_go():
    same(shared(), "plugins", PROGRAMS / "liblife_plugin.so", 40)


def libraries_that_bind_deep():
    same(shared(), "apart", PROGRAMS / "liblife_plugin.so")


def the_driver_comes_late():
    same(shared(), "late_driver")


# --- signals ---

def signal_storms():
    for restart in (0, 1):
        same(shared(), "storm", restart)
    same(shared(), "storm_at_start")


def handlers_that_fork():
    same(shared(), "handler_forks")


def children_are_reaped_by_a_handler():
    same(shared(), "children_end")


# --- ends ---

def ways_to_end():
    ends = {"exit": 5, "_exit": 5, "quick_exit": 5, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL, "segv": -signal.SIGSEGV,
            "term": -signal.SIGTERM, "thread": 5, "return": 5, "pthread_exit": 5, "atexit_after": 5, "atexit_before": 5}
    for how, code in ends.items():
        same(shared(), "ends", how, expect=code)


def ends_while_others_are_inside_calls():
    ends = {"exit": 5, "_exit": 5, "quick_exit": 5, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL, "thread": 5, "return": 5}
    for how, code in ends.items():
        same(shared(), "ends", how, 1, expect=code)


# --- descriptors ---

def descriptors_are_closed_in_the_middle():
    for how in (0, 1):
        same(shared(), "close_all", how)


def descriptors_are_taken_over():
    for how in (0, 1):
        same(shared(), "take_numbers", how, options={"cwd": shared().folder})


def standard_descriptors_are_closed():
    stand = shared()
    file = stand.folder / "said"
    for limit in (0, 64):
        same(stand, "/bin/sh", "-c", f'exec "$0" without_standard "$1" {limit} 0<&- 1>&- 2>&-', WORKER, file)
        check("taken 0" in file.read_text(), f"limit {limit}: {file.read_text()}")


def few_descriptors():
    for limit in (64, 24, 16):
        same(shared(), "few_descriptors", limit, served=limit > 16)
    same(shared(), "few_descriptors", 64, 1, served=False)


# --- limits ---

def limits_of_address_space():
    same(shared(), "/bin/sh", "-c", 'ulimit -v 400000 && exec "$0" work', WORKER)
    for more in (0, 8, 64):  # who ends with half waits up to 16 ms for others, at each of 24 allocations
        same(shared(), "no_address_space", more, served=False, slower=2 * SLOWER)


def lacking_system_calls():
    same(shared(), "filtered", 0, served=False)
    same(shared(), "filtered", 1, served=False)


def system_calls_never_made():
    same(shared(), "filtered", 2)


@contextlib.contextmanager
def unprivileged():
    """A stand that belongs to a user without rights: (stand, what to put before a command, its build folder)."""
    with Life() as stand:
        tree = stand.folder / "build"
        for file in (WORKER, SHIM, SIMGPU / "libcuda.so.1", BUILD / "bin" / "vramd"):
            (tree / file.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(file.resolve(), tree / file.parent.name / file.name)
        machine = stand.folder / "machine"
        machine.mkdir()
        stand.base["SIM_DIR"] = str(machine)
        os.chmod(stand.folder, 0o755)
        if os.geteuid() == 0:
            os.chown(machine, NOBODY, NOBODY)
            drop = ["/usr/bin/setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all",
                    "--bounding-set=-all"]
        else:
            drop = ["/usr/bin/env"]
        yield stand, drop, tree


def limits_of_users():
    with unprivileged() as (stand, drop, tree):
        for resource in ("memlock", "stack", "core"):
            nobody_runs(stand, drop, tree, "limited", resource, 0 if resource != "stack" else 65536)
        # Where no thread can be had the shim does without its own.
        nobody_runs(stand, drop, tree, "limited", "nproc", 4096)
        for limit in (64, 16):
            nobody_runs(stand, drop, tree, "few_descriptors", limit)


def nobody_runs(stand, drop, tree, *job, socket=None, most=1):
    """The job with and without the shim, without rights."""
    command = [*drop, tree / "tests" / "life_worker", *job]
    environment = {"LD_LIBRARY_PATH": tree / "simgpu"}
    plain = run(stand, command, False, environment)
    check(plain[0] == 0, f"{job}: exit {plain[0]} without the shim: {plain[1]}{plain[2]}")
    environment["socket"] = socket or stand.folder / "nobody.sock"
    under = run(stand, command, True, dict(environment, preload=[tree / "lib" / "libvramd.so"]))
    judge(f"{job} without rights", plain, under, most)


def a_socket_without_permission():
    if os.geteuid() != 0:
        return
    with unprivileged() as (stand, drop, tree):
        closed = stand.folder / "closed"
        closed.mkdir(mode=0o700)
        for mode, place in ((0o600, stand.folder), (0o666, closed)):
            path = place / "vramd.sock"
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(str(path))
                listener.listen(1)
                os.chmod(path, mode)
                nobody_runs(stand, drop, tree, "work", socket=path, most=1)


def sockets_that_are_none():
    stand = shared()
    dead = stand.folder / "dead.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as once:
        once.bind(str(dead))
    stream = stand.folder / "stream.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(stream))
        other.listen(1)
        file = stand.folder / "file.sock"
        file.write_text("")
        plain = run(stand, (WORKER, "work"), False, {})
        for path in (dead, stream, file, stand.folder, "/" + "x" * 200, "relative", "/dev/null"):
            judge(f"socket {path}", plain, run(stand, (WORKER, "work"), True, {"socket": path}))
    # Somebody listens and never answers: that is waited for once.
    deaf = stand.folder / "deaf.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(deaf))
        listener.listen(1)
        judge("a deaf socket", plain, run(stand, (WORKER, "work"), True, {"socket": deaf}), slower=1 + SLOWER)


def places_without_a_home():
    stand = shared()
    plain = run(stand, ("/usr/bin/env", "-u", "HOME", "-u", "XDG_RUNTIME_DIR", "-u", "PATH", WORKER, "work"), False, {})
    for unset in (("HOME",), ("HOME", "XDG_RUNTIME_DIR", "PATH", "VRAMD_SOCKET")):
        command = ["/usr/bin/env", *(word for name in unset for word in ("-u", name)), WORKER, "work"]
        judge(f"without {unset}", plain, run(stand, command, True, {}))
    empty = stand.folder / "empty"
    empty.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        same(stand, "rooted", empty)


def own_mounts(stand, script):
    """Whether /bin/sh could run it in a mount namespace of its own: containers may forbid that."""
    probe = subprocess.run(["unshare", "-m", "/bin/sh", "-c", script + " true"], env=stand.base, capture_output=True, text=True)
    if probe.returncode != 0:
        print(f"     left out, no mounts of our own: {probe.stderr.strip()}", flush=True)
    return probe.returncode == 0


def a_read_only_tmp():
    stand = shared()
    script = "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp &&"
    if own_mounts(stand, script):
        same(stand, "/usr/bin/unshare", "-m", "/bin/sh", "-c", script + ' ! touch /tmp/x 2>/dev/null && exec "$0" work', WORKER)


def a_root_without_the_socket():
    with Life() as stand:
        stand.socket = stand.folder / "run" / "vramd.sock"
        stand.socket.parent.mkdir()
        stand.start_daemon()
        root = stand.folder / "root"
        root.mkdir()
        script = f"mount --rbind / {root} && mount -t tmpfs none {root}{stand.socket.parent} &&"
        if own_mounts(stand, script):
            same(stand, "/usr/bin/unshare", "-m", "/bin/sh", "-c", script + f' exec chroot {root} "$0" work', WORKER, served=False)


def namespaces():
    if subprocess.run(["unshare", "-f", "-p", "-n", "-i", "-u", "true"], capture_output=True).returncode != 0:
        print("     left out, no namespaces of our own", flush=True)
        return
    for flags in (("-f", "-p"), ("-n", "-i", "-u")):
        same(shared(), "/usr/bin/unshare", *flags, WORKER, "work")


# --- programs that the loader preloads nothing into ---

def setuid_programs():
    if os.geteuid() != 0:
        return
    with unprivileged() as (stand, drop, tree):
        program = tree / "tests" / "life_worker"
        os.chmod(program, 0o4755)
        os.chmod(stand.folder / "machine", 0o777)  # root without capabilities is not above permissions
        env = {"LIFE_DRIVER": tree / "simgpu" / "libcuda.so.1", "LIFE_SHIM": "0", "preload": [tree / "lib" / "libvramd.so"]}
        plain = run(stand, [*drop, program, "work"], False, env)
        under = run(stand, [*drop, program, "work"], True, env)
        check(plain[0] == 0, f"setuid: {plain}")
        judge("setuid", plain, under, most=0)


def static_programs():
    same(shared(), PROGRAMS / "life_static", expect=4, served=False)


# --- beside others ---

def jemalloc():
    found = [p for p in pathlib.Path("/usr/lib").glob("*/libjemalloc.so.2")]
    if not found:
        print("     left out, there is no libjemalloc.so.2", flush=True)
        return
    for preload in ([SHIM, found[0]], [found[0], SHIM]):
        same(shared(), "work", 4, preload=preload)


def a_tracing_malloc():
    stand = shared()
    report = stand.folder / "malloc"
    tracer = PROGRAMS / "liblife_malloc.so"
    for preload in ([SHIM, tracer], [tracer, SHIM]):
        for job in (("work", 4), ("fork_after",), ("storm_at_start",)):
            same(stand, *job, preload=preload, LIFE_MALLOC_REPORT=report)
            seen, total, ours = map(int, report.read_text().split())
            check(seen == 1 and total > 10, f"the tracer saw no shim or no calls: {report.read_text()}")
            check(ours == 0, f"{job}: the shim called malloc or free {ours} times")


def sanitized(program, library, *jobs, **environment):
    if not program.exists():
        print(f"     left out, there is no {program.name}", flush=True)
        return
    found = subprocess.run(["gcc", f"-print-file-name={library}"], capture_output=True, text=True).stdout.strip()
    probe = run(shared(), (program, "work"), False, environment)
    if "unexpected memory mapping" in probe[2]:
        print("     left out: this sanitizer does not run on this kernel", flush=True)
        return
    for job in jobs:
        same(shared(), program, *job, preload=[found, SHIM], **environment)


def address_sanitizer():
    sanitized(PROGRAMS / "life_worker_address", "libasan.so", ("work", 3), ("thread_ends",), ("fork_before",),
              ASAN_OPTIONS="detect_leaks=0")


def thread_sanitizer():
    # No reports: the driver is not built for it.
    sanitized(PROGRAMS / "life_worker_thread", "libtsan.so", ("work", 3), ("fork_before",),
              TSAN_OPTIONS="report_bugs=0:atexit_sleep_ms=0")


def valgrind():
    if shutil.which("valgrind") is None:
        return
    program = shutil.which("valgrind")
    same(shared(), program, "-q", "--error-exitcode=9", WORKER, "work", 2, 4, SIM_PROTECT=0, slower=10, modes=("daemon",))


def profilers_have_the_driver_for_themselves():
    same(shared(), "work", CUDA_INJECTION64_PATH="/nonexistent/injection.so", LIFE_SHIM="0", served=False)


# --- cards ---

def the_right_card():
    with Life(profile="tiny-512m", devices=4) as stand:
        stand.base["SIM_CONTEXT_MB"] = "16"
        stand.start_daemon()
        uuids = [device["uuid"] for device in stand.status()["devices"]]
        check(len(set(uuids)) == 4, f"uuids: {uuids}")
        for visible in (None, "3,1,0,2", "2", "0,9,1", ",".join(uuids[i] for i in (1, 3)), uuids[2][:12] + "," + uuids[0],
                        "1," + uuids[0]):
            env = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
            order = {None: [0, 1, 2, 3], "0,9,1": [0]}.get(visible)
            if order is None:
                order = [int(item) if item.isdigit() else next(i for i, u in enumerate(uuids) if u.startswith(item))
                         for item in visible.split(",")]
            for ordinal, card in enumerate(order):
                job = stand.start(WORKER, "hold", 40, ordinal, LIFE_SHIM="1", **env)
                try:
                    wait_for_line(job, "holding")
                    leased = [device["leased"] for device in stand.status()["devices"]]
                    check(leased[card] >= 40 * MiB and sum(leased) == leased[card],
                          f"{visible}, ordinal {ordinal}: leased {leased}, expected on {card}")
                finally:
                    out, err = job.communicate("", timeout=10)
                check(job.returncode == 0 and out == "done\n", f"{visible}, ordinal {ordinal}: {job.returncode} {out}{err}")
                check_lines("hold", err, 0)


# --- the daemon's life ---

def hold_through(stand, disturb, slow=SLOWER, most=1):
    """A job holds memory, the daemon is disturbed, the job goes on."""
    job = stand.start(WORKER, "hold", 40, LIFE_SHIM="1")
    try:
        wait_for_line(job, "holding")
        check(stand.leased() >= 40 * MiB, "nothing is leased")
        for step in disturb:
            step()
            begin = time.monotonic()
            job.stdin.write("\n")
            job.stdin.flush()
            check(job.stdout.readline().startswith("sum "), "the job did not go on")
            if time.monotonic() - begin > slow:
                raise Slow(f"the job took {time.monotonic() - begin:.1f} s to go on")
    finally:
        out, err = job.communicate("", timeout=20)
    check(job.returncode == 0 and out == "done\n", f"exit {job.returncode}: {out}{err}")
    check_lines("hold", err, most)
    return err


def the_daemon_dies_and_comes_back():
    with Life() as stand:
        stand.start_daemon()

        def kill():
            stand.daemon.kill()
            stand.daemon.wait()

        def nothing():
            pass

        hold_through(stand, [nothing, kill, stand.start_daemon, nothing])
        wait_for(lambda: stand.leased() == 0, 1, "nothing is leased")
        same(stand, "work")


class Blocks:
    """A job that takes and gives blocks as it is told."""

    def __init__(self, stand):
        self.job = stand.start(WORKER, "blocks", LIFE_SHIM="1")
        wait_for_line(self.job, "ready")

    def tell(self, line, slow=SLOWER):
        begin = time.monotonic()
        self.job.stdin.write(line + "\n")
        self.job.stdin.flush()
        answer = self.job.stdout.readline()
        check(answer.startswith({"+": "took", "-": "gave"}[line[0]]), f"{line}: {answer}{'' if answer else self.job.stderr.read()}")
        if time.monotonic() - begin > slow:
            raise Slow(f"{line} took {time.monotonic() - begin:.1f} s")

    def end(self, most=1):
        out, err = self.job.communicate("", timeout=20)
        check(self.job.returncode == 0 and out == "done\n", f"exit {self.job.returncode}: {out}{err}")
        check_lines("blocks", err, most)


def account(stand):
    """What the daemon knows of its one session on its one card: (leased, charged) in MiB."""
    sessions = stand.status()["sessions"]
    if len(sessions) != 1:
        return None
    return tuple(sessions[0]["devices"][0][what] // MiB for what in ("leased", "charged"))


def ledger_is_empty(stand):
    status = stand.status()
    device = status["devices"][0]
    return not status["sessions"] and device["leased"] == device["charged"] == device["stranded"] == 0


def a_daemon_that_comes_later():
    """A job that began without one enters what it holds into the ledger and borrows from then on."""
    with Life() as stand:
        blocks = Blocks(stand)
        blocks.tell("+300")
        stand.start_daemon()
        time.sleep(1.1)
        blocks.tell("+64")
        wait_for(lambda: account(stand) == (64, 300), 2, lambda: f"the ledger has it: {account(stand)}")
        blocks.tell("-")  # idle segments above 256 MiB go back
        wait_for(lambda: account(stand) == (64, 0), 2, lambda: f"the ledger has it: {account(stand)}")
        blocks.end(most=0)
        wait_for(lambda: ledger_is_empty(stand), 2, "the ledger is empty")


def a_lost_daemon_is_found_again():
    """After a restart, and after it was stopped for longer than anybody waits: then the daemon itself takes the job back."""
    for lost in ("killed", "stopped"):
        with Life() as stand:
            stand.start_daemon()
            blocks = Blocks(stand)
            blocks.tell("+300")
            check(account(stand) == (300, 0), f"leased and charged: {account(stand)}")
            if lost == "killed":
                stand.daemon.kill()
                stand.daemon.wait()
                blocks.tell("+64")
                stand.start_daemon()
            else:
                stand.daemon.send_signal(signal.SIGSTOP)
                blocks.tell("+64", slow=1 + SLOWER)  # notices the loss
                stand.daemon.send_signal(signal.SIGCONT)
            wait_for(lambda: account(stand) is None, 2, "the daemon has no session")
            time.sleep(2.1)  # it was there for less than a second: the first pause is longer
            blocks.tell("+96")
            wait_for(lambda: account(stand) == (96, 364), 2, lambda: f"{lost}: the ledger has it: {account(stand)}")
            check(stand.device()["stranded"] == 0, f"stranded: {stand.device()}")
            blocks.tell("-")
            wait_for(lambda: account(stand) == (96, 64), 2, lambda: f"{lost}: the ledger has it: {account(stand)}")
            blocks.end()
            wait_for(lambda: ledger_is_empty(stand), 2, lambda: f"{lost}: the ledger is empty: {stand.status()}")


class Spy:
    """A job of another user that takes memory and looks for what others left in it."""

    def __init__(self, stand, uid):
        # With the right to open the simulated machine's files, which are root's.
        drop = ["/usr/bin/setpriv", f"--reuid={uid}", "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        self.job = stand.start(*drop, WORKER, "spy", LIFE_SHIM="1")
        wait_for_line(self.job, "ready")

    def tell(self, line):
        self.job.stdin.write(line + "\n")
        self.job.stdin.flush()
        answer = self.job.stdout.readline().split()
        check(answer, self.job.stderr.read() if self.job.poll() is not None else "no answer")
        return int(answer[1]) if answer[0] == "found" else None

    def end(self):
        out, err = self.job.communicate("", timeout=20)
        check(self.job.returncode == 0, f"exit {self.job.returncode}: {out}{err}")


def hand_over(scrub, chunks):
    """Two users take all of a card in turn, on a driver that clears nothing: how many foreign bytes they saw, and how many chunks
    went to and fro."""
    with Life(capacity_mb=140) as stand:
        stand.base.update(SIM_CONTEXT_MB="16", SIM_STALE="1", SIM_PROTECT="0")
        stand.start_daemon({"version": 1, "pool": {"headroom": "0B", "retain": "100%", "scrub": scrub}})
        spies = [Spy(stand, uid) for uid in (64001, 64002)]
        found = done = 0
        while done < chunks:
            for spy in spies:
                found += spy.tell("+62")  # one chunk of 32 MiB, 15 of 2 MiB
                check(stand.leased() == 62 * MiB, f"leased: {stand.leased()}")
                spy.tell("-")
                done += 16
        for spy in spies:
            spy.end()
        return found


def the_bytes_of_another_user(chunks=600):
    if os.geteuid() != 0:
        return
    check(hand_over("driver", 320) > 10 * MiB, "a driver that clears nothing shows nothing")  # the test can see it
    found = hand_over("domain", chunks)
    check(found == 0, f"{found} bytes of another user were seen")


def the_bytes_of_another_user_10000():
    the_bytes_of_another_user(10000)


def what_another_job_holds_idle():
    """It comes back at once when somebody needs it, however long its holder sleeps; of one that can't answer, nobody waits for long."""
    policy = {"version": 1, "pool": {"headroom": "0B", "retain": "0B"}}
    with Life(capacity_mb=1024) as stand:
        stand.base["SIM_CONTEXT_MB"] = "16"
        stand.start_daemon(policy)
        holder = Blocks(stand)
        holder.tell("+200")
        holder.tell("-")
        check(account(stand) == (200, 0), f"held idle: {account(stand)}")
        needy = Blocks(stand)
        needy.tell("+850")
        wait_for(lambda: stand.leased() == 850 * MiB, 1, lambda: f"the holder has given back: {stand.status()}")
        check(stand.metric("vramd_recalls_total") >= 1 and stand.metric("vramd_recalls_late_total") == 0, "recalls are counted")
        holder.tell("+20")
        needy.end(most=0)
        holder.tell("+200")
        holder.tell("-")
        holder.tell("-")
        holder.job.send_signal(signal.SIGSTOP)
        needy = Blocks(stand)
        begin = time.monotonic()
        needy.job.stdin.write("+850\n")
        needy.job.stdin.close()
        check(needy.job.wait(timeout=10) == 70, "850 MiB are there")
        if time.monotonic() - begin > 1.5:
            raise Slow(f"the refusal took {time.monotonic() - begin:.1f} s")
        check("daemon is gone" not in needy.job.stderr.read(), "the job lost the daemon")
        check(stand.metric("vramd_recalls_late_total") >= 1, "a late recall is counted")
        holder.job.send_signal(signal.SIGCONT)
        holder.end(most=0)
        wait_for(lambda: ledger_is_empty(stand), 2, "the ledger is empty")


def what_nobody_has_used_for_long():
    """Goes back by itself."""
    with Life() as stand:
        stand.start_daemon()
        blocks = Blocks(stand)
        blocks.tell("+200")
        blocks.tell("+8")
        blocks.tell("-")
        time.sleep(9)
        check(account(stand) == (232, 0), f"kept for a while: {account(stand)}")
        wait_for(lambda: account(stand)[0] == 32, 20, lambda: f"given back: {account(stand)}")
        blocks.end(most=0)


def nobody_reads_what_we_say():
    """stderr is a pipe without a reader, or full: one line of ours must neither end nor stop a job that says nothing."""
    for full in (False, True):
        with Life() as stand:
            stand.start_daemon()
            reader, writer = os.pipe()
            if full:
                os.set_blocking(writer, False)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        os.write(writer, b"x" * 4096)
                os.set_blocking(writer, True)
            else:
                os.close(reader)
            job = subprocess.Popen([str(WORKER), "hold", "40"], env=stand.environment(LIFE_SHIM="1"), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writer)
            os.close(writer)
            wait_for_line(job, "holding")
            stand.daemon.kill()
            stand.daemon.wait()
            try:
                out, _ = job.communicate("\n", timeout=10)
            except subprocess.TimeoutExpired:
                job.kill()
                job.communicate()
                raise harness.Failure(f"stderr full {full}: the job hangs") from None
            if full:
                os.close(reader)
            check(job.returncode == 0 and out.endswith("done\n"), f"stderr full {full}: exit {job.returncode}: {out}")


def the_daemon_is_stopped():
    with Life() as stand:
        stand.start_daemon()
        hold_through(stand, [lambda: stand.daemon.send_signal(signal.SIGSTOP), lambda: None], slow=1 + SLOWER)
        plain = run(stand, (WORKER, "work"), False, {})
        judge("a stopped daemon", plain, run(stand, (WORKER, "work"), True, {}), slower=1 + SLOWER)
        stand.daemon.send_signal(signal.SIGCONT)
        wait_for(lambda: stand.leased() == 0, 2, "nothing is leased after the daemon went on")
        hold_through(stand, [lambda: stand.daemon.send_signal(signal.SIGCONT)], most=0)
        same(stand, "work")


def a_job_is_stopped():
    """Longer than it waits for the daemon: that is no reason to lose it."""
    stand = shared()
    job = stand.start(WORKER, "work", 3, 400, LIFE_SHIM="1", SIM_PROTECT=0)
    time.sleep(0.1)
    for pause in (1.3, 0.05, 0.05, 0.05):
        job.send_signal(signal.SIGSTOP)
        time.sleep(pause)
        job.send_signal(signal.SIGCONT)
        time.sleep(0.01)
    out, err = job.communicate(timeout=20)
    check(job.returncode == 0 and out.startswith("sum "), f"exit {job.returncode}: {out}{err}")
    check_lines("a stopped job", err, 0)
    wait_for(lambda: stand.leased() == 0, 1, "nothing is leased")


def a_child_outlives_a_killed_job():
    """It has our socket, and knows nothing of it: the session ends all the same."""
    stand = shared()
    job = stand.start(WORKER, "fork_lingers", LIFE_SHIM="1")
    wait_for_line(job, "holding")
    check(stand.leased() >= 40 * MiB, "nothing is leased")
    job.send_signal(signal.SIGKILL)
    job.wait()
    try:
        wait_for(lambda: stand.leased() == 0, 1, "nothing is leased after the kill")
    finally:
        job.communicate(timeout=20)  # the end of its input ends the child


def a_killed_job_gives_its_memory_back():
    with Life(capacity_mb=1024) as stand:
        stand.base["SIM_CONTEXT_MB"] = "16"
        stand.start_daemon()
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGINT):
            job = stand.start(WORKER, "hold", 600)
            wait_for_line(job, "holding")
            job.send_signal(how)
            job.communicate()
            wait_for(lambda: stand.leased() == 0 and stand.device()["free"] > 600 * MiB, 1, f"the memory is back after {how}")


PROGRAM_CASES = [fork_after_cuinit, fork_before_cuinit, vfork_and_exec, posix_spawn_of_jobs, clone_without_fork_handlers,
                 exec_of_itself, python_multiprocessing, threads_end_while_others_allocate, two_hundred_threads, small_stacks,
                 cancelled_threads, libraries_come_and_go, libraries_that_bind_deep, the_driver_comes_late, signal_storms, handlers_that_fork,
                 children_are_reaped_by_a_handler, ways_to_end, ends_while_others_are_inside_calls,
                 descriptors_are_closed_in_the_middle, descriptors_are_taken_over, standard_descriptors_are_closed,
                 few_descriptors]
SURROUNDING_CASES = [limits_of_address_space, lacking_system_calls, system_calls_never_made, limits_of_users,
                     a_socket_without_permission, sockets_that_are_none, places_without_a_home, namespaces, a_read_only_tmp,
                     a_root_without_the_socket, setuid_programs, static_programs, jemalloc, a_tracing_malloc, address_sanitizer,
                     thread_sanitizer, valgrind, profilers_have_the_driver_for_themselves, the_right_card,
                     the_daemon_dies_and_comes_back, a_daemon_that_comes_later, a_lost_daemon_is_found_again,
                     the_bytes_of_another_user, what_another_job_holds_idle, nobody_reads_what_we_say, the_daemon_is_stopped, a_job_is_stopped, a_child_outlives_a_killed_job,
                     a_killed_job_gives_its_memory_back]

SLOW_CASES = [the_bytes_of_another_user_10000, what_nobody_has_used_for_long]

if __name__ == "__main__":
    chosen = {"--programs": PROGRAM_CASES, "--surroundings": SURROUNDING_CASES, "--slow": SLOW_CASES}.get(sys.argv[1] if sys.argv[1:] else None)
    if chosen is not None:
        del sys.argv[1]
    try:
        harness.main([patient(test) for test in chosen or PROGRAM_CASES + SURROUNDING_CASES + SLOW_CASES])
    finally:
        if _stand is not None:
            _stand.__exit__()
