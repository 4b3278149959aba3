"""A daemon on a simulated GPU, and jobs under the shim: what the integration tests in Python stand on.

Every Stand has its own simulated machine, runtime folder, socket and HTTP port, and removes them at the end.
The build folder is the environment's VRAMD_BUILD (set by CTest).
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

BUILD = pathlib.Path(os.environ["VRAMD_BUILD"])
SHIM = BUILD / "lib" / "libvramd.so"
SIMGPU = BUILD / "simgpu"
PROGRAMS = BUILD / "tests"
# What the shim logs once at VRAMD_LOG=info when it serves a process. Tests ask for it: without the shim they must fail.
ACTIVE = "vramd: mode pool"


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def wait_for(condition, seconds, what):
    """Polls until condition() is true; the time it took. Fails after `seconds`, saying `what` or what it returns."""
    begin = time.monotonic()
    while True:
        if condition():
            return time.monotonic() - begin
        check(time.monotonic() - begin < seconds, f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.005)


def wait_for_line(job, text):
    """Reads a job's output up to the line that is `text`."""
    for line in job.stdout:
        if line.strip() == text:
            return
    raise Failure(f"the job ended without saying {text}: " + job.stderr.read())


class Stand:
    def __init__(self, profile="rtx-a5000-24g", capacity_mb=None, devices=1):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vramd-test-", dir="/dev/shm"))
        self.socket = self.folder / "vramd.sock"
        self.config = self.folder / "policy.json"
        self.log = self.folder / "vramd.log"
        self.daemon = None
        self.profile, self.devices = profile, devices
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("VRAMD_", "SIM_", "CUDA_")) and k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        self.base = dict(clean, SIM_NAME=f"test-{os.getpid()}-{self.folder.name[-6:]}", SIM_DIR=str(self.folder),
                         SIM_PROFILE=profile, SIM_DEVICES=str(devices), SIM_PROTECT="1")
        if capacity_mb:
            self.base["SIM_CAPACITY_MB"] = str(capacity_mb)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(Exception):
            if self.daemon and self.daemon.poll() is None:
                self.daemon.kill()
                self.daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- the daemon ---
    def start_daemon(self, policy=None, *arguments):
        if policy is not None:
            self.config.write_text(json.dumps(policy))
        command = [BUILD / "bin" / "vramd", "--socket", self.socket, "--web.listen-address", "127.0.0.1:0",
                   "--sim", f"{self.profile}x{self.devices}", *arguments]
        if policy is not None:
            command += ["--config", self.config]
        with open(self.log, "a") as log:
            self.daemon = subprocess.Popen([str(c) for c in command], env=self.base, stdout=log, stderr=log)

        def answers():
            check(self.daemon.poll() is None, "the daemon ended: " + self.log.read_text())
            with contextlib.suppress(Exception):
                return self.status() is not None
            return False

        wait_for(answers, 10, "the daemon answers")

    def reload(self, policy):
        self.config.write_text(json.dumps(policy))
        before = self.status()["config"]["reloads"]
        self.daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: self.status()["config"]["reloads"] > before, 2, "the reload")

    def status(self):
        result = subprocess.run([str(BUILD / "bin" / "vramctl"), "status", "--json", "--socket", str(self.socket)],
                                env=self.base, capture_output=True, text=True, timeout=10)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def device(self, index=0):
        return self.status()["devices"][index]

    def scrape(self):
        with urllib.request.urlopen("http://" + self.status()["http"] + "/metrics", timeout=5) as reply:
            return reply.read().decode()

    def metric(self, name):
        """The sum over all series of a metric; None when there is none."""
        values = [float(line.rsplit(" ", 1)[1]) for line in self.scrape().splitlines()
                  if line.startswith((name + " ", name + "{"))]
        return sum(values) if values else None

    # --- jobs ---
    def environment(self, shim=True, driver=True, runtime=True, **extra):
        """shim: preloaded. driver: libcuda.so.1 can be found. runtime: the stand-in runtime can be found."""
        env = dict(self.base, VRAMD_SOCKET=str(self.socket), VRAMD_LOG="info")
        if shim:
            env["LD_PRELOAD"] = str(SHIM)
        folder = SIMGPU
        if not driver and runtime:  # a folder with the runtime alone
            folder = self.folder / "runtime-only"
            folder.mkdir(exist_ok=True)
            link = folder / "libcudart.so.13"
            if not link.exists():
                link.symlink_to(SIMGPU / "libcudart.so.13")
        env["LD_LIBRARY_PATH"] = str(folder)
        env.update({k: str(v) for k, v in extra.items()})
        return env

    def start(self, *command, **options):
        return subprocess.Popen([str(c) for c in command], env=self.environment(**options), text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *command, expect=0, active=None, misuse=False, **options):
        """Runs a job to its end. active: whether the shim must have served it (default: if it is preloaded). misuse: whether the
        simulated driver is to report any."""
        result = subprocess.run([str(c) for c in command], env=self.environment(**options), text=True, capture_output=True,
                                timeout=120)
        text = f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        check(result.returncode == expect, f"expected exit {expect}: {text}")
        check(("simgpu: misuse:" in result.stderr) == misuse, f"misuse of the driver: expected {misuse}: {text}")
        if active is None:
            active = options.get("shim", True)
        check((ACTIVE in result.stderr) == active, f"shim active: expected {active}: {text}")
        return result


def main(tests):
    """Runs the functions named on the command line, or all; prints one line each; exits 1 if any failed."""
    chosen = [t for t in tests if not sys.argv[1:] or t.__name__ in sys.argv[1:]]
    failed = 0
    for test in chosen:
        begin = time.monotonic()
        try:
            test()
            print(f"ok   {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
        except (Failure, subprocess.TimeoutExpired, AssertionError) as error:
            failed += 1
            print(f"FAIL {test.__name__}: {error}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not chosen else 0)
