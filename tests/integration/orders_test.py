#!/usr/bin/env python3
"""What admins order with vramctl: trim, limit, policy reload; who, ps and what a killed job leaves."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.integration.process_life import WORKER, Blocks, Life, account  # noqa: E402
from tests.support import harness  # noqa: E402
from tests.support.harness import BUILD, check, wait_for, wait_for_line  # noqa: E402

MiB = 1 << 20
POLICY = {"version": 1, "pool": {"headroom": "0B", "retain": "100%"}}
AS_NOBODY = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]


def vramctl(stand, *words, code=0, drop=()):
    command = [*drop, str(BUILD / "bin" / "vramctl"), *map(str, words), "--socket", str(stand.socket)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=stand.base, cwd="/")
    check(done.returncode == code, f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def trims():
    with Life() as stand:
        stand.start_daemon(POLICY)
        first, second = Blocks(stand), Blocks(stand)
        for blocks in (first, second):
            blocks.tell("+200")
            blocks.tell("+8")
            blocks.tell("-")
        sessions = {session["pid"]: session["id"] for session in stand.status()["sessions"]}
        check(stand.leased() == 464 * MiB, f"leased: {stand.status()}")
        out = vramctl(stand, "trim", "--session", sessions[first.job.pid])
        check(out == "200 MiB went back to the driver\n", out)
        check(stand.leased() == 264 * MiB and stand.device()["cached"] == 0, f"after one trim: {stand.device()}")
        check("no such session" in vramctl(stand, "trim", "--session", 999, code=1), "an unknown session")
        check("no such GPU" in vramctl(stand, "trim", "--gpu", 7, code=1), "an unknown GPU")
        out = vramctl(stand, "trim")
        check(out == "200 MiB went back to the driver\n", out)
        check(vramctl(stand, "trim") == "0 B went back to the driver\n", "nothing is left")
        second.job.send_signal(signal.SIGSTOP)  # who doesn't answer is not waited for
        begin = time.monotonic()
        vramctl(stand, "trim")
        check(time.monotonic() - begin < 2, "a stopped session holds up a trim")
        second.job.send_signal(signal.SIGCONT)
        for blocks in (first, second):
            blocks.tell("+100")
            blocks.end(most=0)


def limits():
    with Life() as stand:
        stand.start_daemon(POLICY | {"sessions": [{"match": {"any": True}, "limit": "1GiB"}]})
        blocks = Blocks(stand)
        blocks.tell("+100")
        session = stand.status()["sessions"][0]["id"]
        out = vramctl(stand, "limit", session, "150MiB")
        check(out == f"session {session}: at most 150 MiB on each GPU\n", out)
        check(stand.status()["sessions"][0]["devices"][0]["limit"] == 150 * MiB, "the status says so")
        blocks.job.stdin.write("+100\n")
        blocks.job.stdin.flush()
        check(blocks.job.wait(10) == 70, "the limit does not hold")
        check("limit of 150 MiB" in blocks.job.stderr.read(), "the job is not told")
        blocks = Blocks(stand)
        session = stand.status()["sessions"][0]["id"]
        vramctl(stand, "limit", session, "4GiB")  # above the policy's: an admin may
        blocks.tell("+2000")
        vramctl(stand, "limit", session, "policy")
        check(stand.status()["sessions"][0]["devices"][0]["limit"] == 1024 * MiB, "the policy's limit holds again")
        blocks.end(most=0)
        for words, text in ((("limit", "1", "50%"), "share of which GPU"), (("limit", "1", "12"), "no unit"), (("limit",), "required"),
                            (("limit", "0", "1GiB"), "SESSION")):
            check(text in vramctl(stand, *words, code=2), f"{words}")
        check("no such session" in vramctl(stand, "limit", 99, "1GiB", code=1), "an unknown session")


def the_policy_again():
    with Life() as stand:
        stand.start_daemon(POLICY)
        stand.config.write_text('{"version": 1, "mode": "observe"}')
        check("has been read again" in vramctl(stand, "policy", "reload"), "reload")
        check(stand.status()["mode"] == "observe", "the new policy holds")
        stand.config.write_text('{"version": 2}')
        check("old policy holds" in vramctl(stand, "policy", "reload", code=1), "a bad file")
        check(stand.status()["mode"] == "observe", "the old policy holds")


def others_may_order_little():
    if os.geteuid() != 0:
        return
    with Life() as stand:
        stand.start_daemon(POLICY)
        blocks = Blocks(stand)
        blocks.tell("+100")
        os.chmod(stand.folder, 0o755)
        os.chmod(stand.socket, 0o666)
        tree = stand.folder / "bin"
        tree.mkdir()
        subprocess.run(["cp", BUILD / "bin" / "vramctl", tree], check=True)
        session = stand.status()["sessions"][0]["id"]
        for words in (("trim",), ("trim", "--session", session), ("limit", session, "1GiB"), ("policy", "reload")):
            done = subprocess.run([*AS_NOBODY, tree / "vramctl", *map(str, words), "--socket", stand.socket], capture_output=True,
                                  text=True, env=stand.base, cwd="/", timeout=30)
            check(done.returncode == 1 and "not for this user" in done.stderr, f"{words}: {done}")
        check(account(stand) == (100, 0), "nothing has changed")
        blocks.end(most=0)


def who_and_ps():
    with Life() as stand:
        stand.start_daemon(POLICY)
        blocks = Blocks(stand)
        blocks.tell("+100")
        out = vramctl(stand, "who")
        check("100 MiB" in out.splitlines()[1] and out.splitlines()[1].split()[1] == "1", out)
        check(json.loads(vramctl(stand, "who", "--json"))[0]["leased"] == 100 * MiB, "who --json")
        plain = stand.start(WORKER, "hold", "40", shim=False, LIFE_SHIM="0")  # no session
        wait_for_line(plain, "holding")
        listed = {entry["pid"]: entry for entry in json.loads(vramctl(stand, "ps", "--json"))}
        check(set(listed) == {blocks.job.pid, plain.pid}, f"ps: {listed}")
        check(listed[blocks.job.pid]["bytes"] == 100 * MiB and listed[plain.pid]["session"] is None, f"ps: {listed}")
        out = vramctl(stand, "ps", "--orphans", code=1)
        check(str(plain.pid) in out and str(blocks.job.pid) not in out, out)
        plain.communicate("")
        # A forked child that keeps the driver's files: its parent's memory stays until it ends, and it is named.
        parent = stand.start(WORKER, "fork_lingers", LIFE_SHIM="1")
        wait_for_line(parent, "holding")
        before = stand.device()["free"]
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_for(lambda: len(stand.status()["sessions"]) == 1, 2, "the session ended")
        orphans = json.loads(vramctl(stand, "ps", "--orphans", "--json", code=1))
        check(len(orphans) == 1 and orphans[0]["command"] == "life_worker", f"orphans: {orphans}")
        wait_for(lambda: stand.device()["stranded"] >= 40 * MiB, 2, lambda: f"what it keeps is stranded: {stand.device()}")
        parent.stdin.close()  # ends the child
        wait_for(lambda: stand.device()["free"] >= before + 40 * MiB and stand.device()["stranded"] == 0, 5,
                 lambda: f"it is back: {stand.device()}, free before {before}")
        check(vramctl(stand, "ps", "--orphans").count("\n") == 1, "no orphans are left")
        blocks.end(most=0)


if __name__ == "__main__":
    harness.main([trims, limits, the_policy_again, others_may_order_little, who_and_ps])
