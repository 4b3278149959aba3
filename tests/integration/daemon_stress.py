#!/usr/bin/env python3
"""Many jobs on one card, killed, stopped and ended at random: at every quiet moment the ledger, the sessions, the metrics and the
simulated driver's own account say the same.

  daemon_stress.py [SECONDS [SEED]]"""
import os
import pathlib
import random
import select
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.integration.process_life import WORKER, Life, ledger_is_empty  # noqa: E402
from tests.support.harness import check, wait_for  # noqa: E402

MiB = 1 << 20
CONTEXT = 4  # MiB
MOST_JOBS = 16


class Job:
    """Takes and gives blocks; may be refused memory, and then ends."""

    def __init__(self, stand):
        self.process = stand.start(WORKER, "blocks", LIFE_SHIM="1", SIM_PROTECT="0")
        self.ready = self.process.stdout.readline() == "ready\n"
        if not self.ready:
            self.check_end()
        self.held = 0
        self.asked = 0
        self.stopped = False

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # it has ended, and answers() says why
        self.asked += 1
        self.held += 1 if line[0] == "+" else -1

    def check_end(self):
        """The card was full: for a block, or for its context."""
        code = self.process.wait(10)
        text = self.process.stderr.read()
        check(code == 70 and ("cuMemAlloc" in text or "cuDevicePrimaryCtxRetain" in text), f"a job ended with {code}: {text}")

    def answers(self, seconds):
        """Reads what it has answered until nothing is asked any more; False when it has ended."""
        deadline = time.monotonic() + seconds
        while self.asked > 0:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                check(time.monotonic() < deadline, "a job doesn't answer")
                continue
            text = os.read(self.process.stdout.fileno(), 4096)  # past Python's buffer, of which select() knows nothing
            if not text:
                self.check_end()
                return False
            self.asked -= text.count(b"\n")
        return True


def do_something(stand, jobs, chance):
    job = chance.choice(jobs) if jobs else None
    action = chance.random()
    if job is None or (action < 0.12 and len(jobs) < MOST_JOBS):
        job = Job(stand)
        if job.ready:
            jobs.append(job)
    elif job.stopped:
        if action < 0.6:
            job.process.send_signal(signal.SIGCONT)
            job.stopped = False
    elif action < 0.60:
        job.tell(f"+{chance.choice((1, 3, 20, 33, 64, 100, 250))}") if job.held < 40 else job.tell("-")
    elif action < 0.86:
        if job.held > 0:
            job.tell("-")
    elif action < 0.90:
        job.process.send_signal(signal.SIGSTOP)
        job.stopped = True
    elif action < 0.95:
        job.process.kill()
        job.process.communicate()
        jobs.remove(job)
    else:
        jobs.remove(job)
        alive = job.answers(10)
        if alive:
            job.process.communicate("", timeout=10)
    time.sleep(chance.random() * 0.01)


def come_to_rest(stand, jobs):
    for job in list(jobs):
        if job.stopped:
            job.process.send_signal(signal.SIGCONT)
            job.stopped = False
        if not job.answers(20):
            jobs.remove(job)
    wait_for(lambda: agree(stand, len(jobs)) is None, 5, lambda: agree(stand, len(jobs)))


def agree(stand, jobs):
    """None, or what doesn't."""
    status = stand.status()
    device = status["devices"][0]
    sessions = status["sessions"]
    if len(sessions) != jobs:
        return f"{len(sessions)} sessions, {jobs} jobs"
    for what in ("leased", "charged"):
        total = sum(session["devices"][0][what] for session in sessions)
        if total != device[what]:
            return f"sessions have {what} {total}, the card {device[what]}"
    metrics = {name: stand.metric(f"vramd_pool_{name}_bytes") for name in ("leased", "cached", "reserved", "stranded")}
    for name, value in metrics.items():
        if value != device[name]:
            return f"the metric says {name} {value}, the status {device[name]}"
    # What the simulated driver counts: the contexts of the daemon and the jobs, the pool, and what sessions made themselves.
    used = device["total"] - device["free"]
    expected = (jobs + 1) * CONTEXT * MiB + device["reserved"] + device["charged"]
    # An estimate, which takes a context that came at the wrong moment for a dead session's memory.
    if device["stranded"] > (jobs + 1) * CONTEXT * MiB or used != expected:
        return f"the driver counts {used} used, the ledger {expected}: {device}"
    return None


def stress(seconds, seed):
    chance = random.Random(seed)
    with Life(capacity_mb=1536) as stand:
        stand.base["SIM_CONTEXT_MB"] = str(CONTEXT)
        stand.start_daemon({"version": 1, "pool": {"headroom": "0B", "retain": "30%"}})
        jobs, rests, begin = [], 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            for _ in range(chance.randrange(20, 120)):
                do_something(stand, jobs, chance)
            come_to_rest(stand, jobs)
            rests += 1
        for job in jobs:
            job.process.kill()
            job.process.communicate()
        wait_for(lambda: ledger_is_empty(stand) and agree(stand, 0) is None, 5, lambda: agree(stand, 0))
        grants = stand.status()["grants"]
        print(f"{rests} times at rest, {grants}, {int(stand.metric('vramd_recalls_total'))} recalls")
        check(rests > 2 and grants["hit"] > 20, "too little was tried")


if __name__ == "__main__":
    stress(float(sys.argv[1]) if sys.argv[1:] else 8, int(sys.argv[2]) if sys.argv[2:] else 1)
