"""vramctl from the outside: run, status, doctor, policy check, completion, help, exit codes.

Arguments: the vramctl program, a harmless shared library to preload, the folder of golden files, "compare-help" or
"skip-help" (CLI11 lays its help out differently from version to version), then unittest's own.
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from vramctl_fake_daemon import HELLO, STATUS, FakeDaemon

VRAMCTL, PRELOAD, GOLDEN, HELP = sys.argv[1:5]
GIB = 1 << 30
VERSION = subprocess.run([VRAMCTL, "--version"], capture_output=True, text=True).stdout.split()[-1]

STATUS_OF_TWO = {
    "version": VERSION, "pid": 4711, "epoch": 1, "uptime_seconds": 11520, "mode": "pool",
    "config": {"file": "/etc/vramd/vramd.json", "reloads": 0, "last_reload_successful": True}, "http": "127.0.0.1:9845",
    "environment": {},
    "devices": [
        {"index": 0, "uuid": "GPU-6a16b9c2", "name": "NVIDIA A100", "pci_bus_id": "0000:07:00.0", "total": 80 * GIB,
         "free": 60 * GIB, "reserved": 256 << 20, "leased": 12 * GIB, "cached": 4 * GIB, "stranded": 0, "context": 300 << 20,
         "sessions": 2},
        {"index": 1, "uuid": "GPU-77", "name": "NVIDIA A100", "total": 80 * GIB, "free": 80 * GIB, "leased": 0, "cached": 0}],
    "sessions": [
        {"id": 1, "pid": 100, "uid": 1000, "user": "alice", "command": "python", "container": "host", "job": "mnist",
         "mode": "pool", "priority": "batch",
         "devices": [{"index": 0, "source": "daemon", "leased": 10 * GIB, "charged": GIB // 2, "limit": 12 * GIB}]},
        {"id": 2, "pid": 101, "uid": 1001, "user": "bob", "command": "evil\u001b[2J", "container": "c0ffee", "job": "",
         "mode": "observe", "priority": "normal",
         "devices": [{"index": 0, "source": "local", "leased": 0, "charged": 0, "limit": None}]},
        {"id": 3, "pid": 102, "user": "carol", "command": "idle"}],
    "grants": {"hit": 5, "miss": 2, "oom": 1}}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramctl-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = str(self.folder / "v.sock")
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        self.environment = keep | {"VRAMD_LIBRARY": PRELOAD, "VRAMD_SOCKET": self.socket}

    def vramctl(self, *words, code=0, program=VRAMCTL, stdin="", **environment):
        done = subprocess.run([program, *words], input=stdin, capture_output=True, text=True, timeout=60,
                              env={name: value for name, value in (self.environment | environment).items() if value is not None})
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return str(path)


class Run(Case):
    def environment_of_command(self, *options, **environment):
        out = self.vramctl("run", *options, "--", "env", **environment).stdout
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def planned(self, *options, **environment):
        done = self.vramctl("run", "--dry-run", "--json", *options, "--", "env", **environment)
        return json.loads(done.stdout)

    def test_sets_what_is_asked_and_starts_the_command(self):
        got = self.environment_of_command("--mode", "pool", "--limit", "12GiB", "--priority", "batch", "--job", "a b",
                                          "--socket", self.socket)
        self.assertEqual(got["LD_PRELOAD"], os.path.realpath(PRELOAD))
        self.assertEqual((got["VRAMD_MODE"], got["VRAMD_LIMIT"], got["VRAMD_PRIORITY"], got["VRAMD_JOB"], got["VRAMD_SOCKET"]),
                         ("pool", "12GiB", "batch", "a b", self.socket))
        self.assertEqual(got["XLA_PYTHON_CLIENT_PREALLOCATE"], "false")
        self.assertEqual(got["TF_FORCE_GPU_ALLOW_GROWTH"], "true")

    def test_leaves_what_is_not_asked_for_alone(self):
        got = self.environment_of_command(VRAMD_LIMIT="3GiB", XLA_PYTHON_CLIENT_PREALLOCATE="true")
        self.assertNotIn("VRAMD_MODE", got)
        self.assertEqual(got["VRAMD_LIMIT"], "3GiB")
        self.assertEqual(got["XLA_PYTHON_CLIENT_PREALLOCATE"], "true")

    def test_mode_observe_does_not_touch_the_frameworks(self):
        self.assertNotIn("TF_FORCE_GPU_ALLOW_GROWTH", self.environment_of_command("--mode", "observe"))

    def test_keeps_other_preloads_and_names_itself_once(self):
        library = os.path.realpath(PRELOAD)
        plan = self.planned(LD_PRELOAD=f"libm.so.6 {library}:libdl.so.2")
        self.assertEqual(plan["environment"]["LD_PRELOAD"], f"{library}:libm.so.6:libdl.so.2")
        self.assertNotIn("LD_PRELOAD", self.planned(LD_PRELOAD=f"{library}:libm.so.6")["environment"])

    def test_arguments_of_the_command_are_its_own(self):
        script = self.write("show", "#!/bin/sh\nprintf '%s|' \"$@\"\n", 0o755)
        self.assertEqual(self.vramctl("run", "--", script, "--limit", "x", "--", "-v").stdout, "--limit|x|--|-v|")
        self.assertEqual(self.vramctl("run", "--mode", "off", script, "status", "--json").stdout, "status|--json|")

    def test_no_daemon_is_one_line_and_no_obstacle(self):
        done = self.vramctl("run", "--", "true")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertRegex(done.stderr, r"^vramctl: no daemon at .*; the job runs on memory of its own \(local\)$")
        self.assertEqual(self.vramctl("run", "--mode", "off", "--", "true").stderr, "")

    def test_a_daemon_is_named_to_the_command(self):
        with FakeDaemon(self.socket, STATUS_OF_TWO) as daemon:
            done = self.vramctl("run", "--socket", self.socket, "--", "env", VRAMD_SOCKET=None)
            self.assertIn(f"VRAMD_SOCKET={self.socket}\n", done.stdout)
            self.assertEqual(done.stderr, "")
            self.assertEqual(daemon.requests, [HELLO, STATUS])

    def test_takes_over_the_simulated_gpu_of_the_daemon(self):
        offered = {"LD_LIBRARY_PATH": "/sim/a:/sim/b", "SIM_NAME": "n", "SIM_PROFILE": "a100-80g", "SIM_DEVICES": "2",
                   "LD_AUDIT": "/tmp/evil.so", "PATH": "/tmp/evil"}
        with FakeDaemon(self.socket, STATUS_OF_TWO | {"environment": offered}):
            got = self.environment_of_command(LD_LIBRARY_PATH="/mine:/sim/b")
            self.assertEqual(got["LD_LIBRARY_PATH"], "/sim/a:/sim/b:/mine")
            self.assertEqual((got["SIM_NAME"], got["SIM_PROFILE"], got["SIM_DEVICES"]), ("n", "a100-80g", "2"))
            self.assertNotIn("LD_AUDIT", got)
            self.assertEqual(got["PATH"], os.environ["PATH"])
            self.assertNotIn("SIM_NAME", self.environment_of_command("--sim-env", "none"))

    @unittest.skipUnless(os.getuid() == 0, "only root can act as somebody else")
    def test_another_users_daemon_does_not_choose_libraries(self):
        # The kernel tells who called listen(): that is what the daemon counts as.
        self.folder.chmod(0o777)
        os.seteuid(65534)
        try:
            daemon = FakeDaemon(self.socket, STATUS_OF_TWO | {"environment": {"LD_LIBRARY_PATH": "/evil"}})
        finally:
            os.seteuid(0)
        with daemon:
            done = self.vramctl("run", "--", "env")
            self.assertNotIn("/evil", done.stdout)
            self.assertIn("runs as another user (uid 65534)", done.stderr)

    def test_bad_daemons_do_not_stop_the_command(self):
        for behaviour in ("hangup", "nonsense", "old", "without_fd", "short_text", "deaf"):
            with self.subTest(behaviour), FakeDaemon(self.socket, behaviour=behaviour):
                done = self.vramctl("run", "--", "echo", "on")
                self.assertEqual(done.stdout, "on\n")
                self.assertIn("the job runs on memory of its own (local)", done.stderr)
            os.unlink(self.socket)

    def test_dry_run_is_a_script_that_does_the_same(self):
        script = self.vramctl("run", "--dry-run", "--limit", "50%", "--job", "it's", "--", "env").stdout
        self.assertIn("# else JAX takes most", script)
        done = subprocess.run(["sh"], input=script, capture_output=True, text=True, env=self.environment, check=True)
        self.assertIn("VRAMD_LIMIT=50%\n", done.stdout)
        self.assertIn("VRAMD_JOB=it's\n", done.stdout)
        self.assertIn(f"LD_PRELOAD={os.path.realpath(PRELOAD)}\n", done.stdout)

    def test_verbose_says_what_it_sets(self):
        self.assertIn("vramctl: VRAMD_LIMIT=1GiB  (--limit)", self.vramctl("run", "-v", "--limit", "1GiB", "--", "true").stderr)

    def test_exit_code_is_the_commands(self):
        self.vramctl("run", "--", "sh", "-c", "exit 42", code=42)

    def test_command_not_found(self):
        self.assertIn("no-such-program is not in PATH", self.vramctl("run", "--", "no-such-program", code=127).stderr)
        self.assertIn("No such file", self.vramctl("run", "--", "./no-such-program", code=127).stderr)

    def test_command_not_executable(self):
        self.assertIn("chmod +x", self.vramctl("run", "--", self.write("data", "x"), code=126).stderr)
        self.assertIn("folder", self.vramctl("run", "--", str(self.folder), code=126).stderr)

    def test_script_without_interpreter_line(self):
        self.assertEqual(self.vramctl("run", "--", self.write("plain", "echo plain\n", 0o755)).stdout, "plain\n")

    def test_wrong_usage(self):
        for words, message in [
                ((), "which command?"), (("--",), "which command?"), (("--limit", "12GB", "--", "true"), 'write "12GiB"'),
                (("--limit", "12", "--", "true"), 'such as "12GiB"'), (("--limit", "1.5", "--", "true"), 'such as "1.5GiB"'),
                (("--limit", "-1", "--", "true"), "negative"), (("--limit", "0", "--", "true"), "leave --limit out"),
                (("--mode", "fast", "--", "true"), "write off, observe or pool"),
                (("--mode", "full", "--", "true"), "full is not built yet"),
                (("--mode", "full", "--", "true"), "write pool"),
                (("--priority", "high", "--", "true"), "write batch, normal or interactive"),
                (("--job", "x" * 64, "--", "true"), "at most 63 bytes"), (("--lmit", "1GiB", "--", "true"), "--lmit"),
                (("--lmit", "1GiB"), "put the command after --"), (("stray", "--", "true"), '"stray" stands before --'),
                (("--json", "--", "true"), "--dry-run")]:
            with self.subTest(words):
                done = self.vramctl("run", *words, code=2)
                self.assertIn(message, done.stderr)
                self.assertIn("vramctl run --help", done.stderr)
                self.assertEqual(done.stdout, "")

    def test_library_missing(self):
        done = self.vramctl("run", "--", "true", code=2, VRAMD_LIBRARY="/nowhere/libvramd.so")
        self.assertIn("no libvramd.so at /nowhere/libvramd.so; correct VRAMD_LIBRARY", done.stderr)

    def test_library_is_found_beside_the_program(self):
        (self.folder / "bin").mkdir()
        program = shutil.copy(VRAMCTL, self.folder / "bin" / "vramctl")
        done = self.vramctl("run", "--", "true", code=2, program=program, VRAMD_LIBRARY=None)
        self.assertIn("name it in VRAMD_LIBRARY", done.stderr)
        for place in ("lib/vramd", "lib"):  # the second one, as built, goes first
            (self.folder / place).mkdir(exist_ok=True, parents=True)
            library = shutil.copy(PRELOAD, self.folder / place / "libvramd.so")
            out = self.vramctl("run", "--dry-run", "--json", "--", "true", program=program, VRAMD_LIBRARY=None).stdout
            self.assertEqual(json.loads(out)["environment"]["LD_PRELOAD"], os.path.realpath(library))

    def test_library_in_a_folder_with_a_space(self):
        (self.folder / "a b").mkdir()
        library = shutil.copy(PRELOAD, self.folder / "a b" / "libvramd.so")
        done = self.vramctl("run", "--", "true", code=2, VRAMD_LIBRARY=str(library))
        self.assertIn("without spaces and colons", done.stderr)

    def static_program(self, name="static", machine=None, bits=2):
        """The smallest ELF file that asks for no dynamic linker."""
        own = pathlib.Path("/proc/self/exe").read_bytes()[18:20]
        machine = struct.unpack("<H", own)[0] if machine is None else machine
        identity = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
        header = identity + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 128, 128, 0x1000)
        return self.write(name, header + segment + bytes(8), 0o755)

    def notes(self, program):
        return self.vramctl("run", "--dry-run", "--mode", "off", "--", program).stderr

    def test_static_program_is_warned_about(self):
        self.assertRegex(self.notes(self.static_program()),
                         "^vramctl: warning: .*statically linked and never loads a library, so vramd has no effect in it\n$")
        script = self.write("script", f"#! {self.static_program('inner')} -x\n", 0o755)
        self.assertIn("its interpreter", self.notes(script))
        self.assertEqual(self.notes("env"), "")
        self.assertEqual(self.notes(self.write("fine", "#!/bin/sh\n", 0o755)), "")

    def test_program_of_another_machine_is_warned_about(self):
        self.assertIn("another machine", self.notes(self.static_program(machine=0xF3F3)))

    def test_broken_elf_files_are_survived(self):
        good = pathlib.Path(PRELOAD).read_bytes()
        for length in (4, 20, 63, 64, 100, 4096):
            self.notes(self.write("cut", good[:length], 0o755))
        for offset in (32, 40, 54, 56, 58, 60):
            broken = bytearray(good)
            broken[offset:offset + 2] = b"\xff\xff"
            self.notes(self.write("broken", bytes(broken), 0o755))

    @unittest.skipUnless(os.getuid() == 0, "only root can give files away")
    def test_setuid_program_is_warned_about(self):
        program = shutil.copy(shutil.which("true"), self.folder / "setuid")
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        self.assertIn("it is setuid and the dynamic linker ignores LD_PRELOAD", self.notes(program))

    def test_disabled_is_warned_about(self):
        for value in ("1", "false", "2"):  # any but 0 and nothing
            self.assertIn(f"VRAMD_DISABLE={value} is set", self.vramctl("run", "--", "true", VRAMD_DISABLE=value).stderr)
        for value in ("", "0"):
            self.assertNotIn("VRAMD_DISABLE", self.vramctl("run", "--", "true", VRAMD_DISABLE=value).stderr)


class Status(Case):
    def test_people_read_one_line_per_gpu_and_session(self):
        with FakeDaemon(self.socket, STATUS_OF_TWO):
            text = self.vramctl("status").stdout
        self.assertEqual(text, f"""\
vramd {VERSION}  pid 4711  up 3 h 12 min  mode pool  http://127.0.0.1:9845/
policy /etc/vramd/vramd.json
[0] NVIDIA A100 | 20 GiB / 80 GiB | leased 12 GiB, cached 4 GiB, reserved 256 MiB | 2 sessions | GPU-6a16b9c2
    #1 alice: python[100]  10.50 GiB of 12 GiB (512 MiB of it outside the pool)  job mnist  pool  batch  source daemon
    #2 bob: evil\\x1b[2J[101]  0 B  container c0ffee  observe  normal  source local
[1] NVIDIA A100 | 0 B / 80 GiB | leased 0 B, cached 0 B | 0 sessions | GPU-77
on no GPU yet
    #3 carol: idle[102]
grants: 5 from the pool, 2 from the driver, 1 refused
""")

    def test_json_is_the_daemons_own(self):
        with FakeDaemon(self.socket, STATUS_OF_TWO | {"future": [1]}):
            self.assertEqual(json.loads(self.vramctl("status", "--json").stdout), STATUS_OF_TWO | {"future": [1]})

    def test_missing_and_odd_fields_are_survived(self):
        for status in ({}, {"devices": 5, "sessions": {"a": 1}, "version": 7, "config": [], "environment": 3},
                       {"devices": [None, 1, {}], "sessions": [[], {"devices": [{}]}], "uptime_seconds": -1e300}):
            with self.subTest(status), FakeDaemon(self.socket, status):
                self.assertIn("vramd of unknown version", self.vramctl("status").stdout)
            os.unlink(self.socket)

    def test_no_daemon(self):
        done = self.vramctl("status", code=1)
        self.assertRegex(done.stderr, "no daemon at .*No such file.*\n  start one with `vramd --socket ")
        self.assertEqual(done.stdout, "")

    def test_socket_option_goes_before_the_environment(self):
        with FakeDaemon(self.socket, STATUS_OF_TWO):
            self.vramctl("status", "--socket", self.socket, VRAMD_SOCKET="/nowhere")
            self.vramctl("status", "--socket", "/nowhere", code=1)

    def test_socket_of_the_user(self):
        if os.path.exists("/run/vramd/vramd.sock"):
            self.skipTest("the system's daemon goes first")
        with FakeDaemon(str(self.folder / "vramd.sock"), STATUS_OF_TWO):
            self.vramctl("status", VRAMD_SOCKET=None, XDG_RUNTIME_DIR=str(self.folder))

    def test_bad_daemons_are_named(self):
        for behaviour, message in [("hangup", "closed the connection"), ("nonsense", "does not speak vramd's protocol"),
                                   ("old", "another version of the protocol"), ("without_fd", "came without its text"),
                                   ("short_text", "came without its text"), ("no_json", "is no JSON")]:
            with self.subTest(behaviour), FakeDaemon(self.socket, behaviour=behaviour):
                self.assertIn(message, self.vramctl("status", code=1).stderr)
            os.unlink(self.socket)

    def test_a_deaf_daemon_costs_seconds_not_forever(self):
        with FakeDaemon(self.socket, behaviour="deaf"):
            start = time.monotonic()
            self.assertIn("does not answer", self.vramctl("status", code=1).stderr)
            self.assertLess(time.monotonic() - start, 20)

    def test_too_long_a_path(self):
        self.assertIn("too long", self.vramctl("status", "--socket", "/" + "x" * 200, code=1).stderr)


class Policy(Case):
    def test_good_file(self):
        path = self.write("good.json", '{"version": 1}')
        self.assertEqual(self.vramctl("policy", "check", path).stdout, f"{path}: ok\n")

    def test_bad_file(self):
        path = self.write("bad.json", '{"version": 1,\n "pol": {}}')
        done = self.vramctl("policy", "check", path, code=1)
        self.assertEqual(done.stderr, f'{path}:2:2: error: pol: unknown key "pol"; did you mean "pool"?\n')
        self.assertEqual(done.stdout, "")

    def test_one_bad_file_of_two(self):
        good, bad = self.write("good.json", '{"version": 1}'), self.write("bad.json", "{")
        self.assertIn("good.json: ok", self.vramctl("policy", "check", bad, good, code=1).stdout)

    def test_json_and_warnings(self):
        path = self.write("later.json", '{"version": 1, "oom": {}}')
        self.assertEqual(json.loads(self.vramctl("policy", "check", "--json", path).stdout),
                         [{"file": path, "line": 1, "column": 16, "severity": "warning", "path": "oom",
                           "message": "not acted on by this version", "hint": "it is only checked"}])
        self.vramctl("policy", "check", "--strict", path, code=1)

    def test_standard_input(self):
        self.assertEqual(self.vramctl("policy", "check", "-", stdin='{"version": 1}').stdout, "<stdin>: ok\n")
        self.assertIn("<stdin>:1:1: error: the file is empty", self.vramctl("policy", "check", "-", code=1).stderr)

    def test_unreadable_and_missing(self):
        self.assertIn("cannot be opened", self.vramctl("policy", "check", "/nowhere.json", code=1).stderr)
        self.vramctl("policy", "check", code=2)
        self.vramctl("policy", code=2)


class Doctor(Case):
    def checks(self, *options, code=1, **environment):
        done = self.vramctl("doctor", "--json", *options, code=code, **environment)
        return {check["check"]: check for check in json.loads(done.stdout)}

    def test_every_check_has_a_verdict_and_every_finding_a_remedy(self):
        checks = self.checks()
        for name in ("shim library", "socket", "daemon", "policy file", "driver library", "LD_PRELOAD", "CUDA_INJECTION64_PATH",
                     "open files", "kernel", "/dev/shm", "container"):
            self.assertIn(name, checks)
        for check in checks.values():
            self.assertIn(check["state"], ("ok", "finding", "skipped"))
            self.assertEqual(check["remedy"] != "", check["state"] == "finding", check)

    def test_without_a_daemon(self):
        checks = self.checks()
        self.assertEqual(checks["socket"]["state"], "finding")
        self.assertEqual(checks["daemon"]["state"], "skipped")

    def test_with_a_daemon(self):
        with FakeDaemon(self.socket, STATUS_OF_TWO | {"config": {}}):
            checks = self.checks()
        self.assertEqual((checks["socket"]["state"], checks["daemon"]["state"]), ("ok", "ok"))
        self.assertEqual(checks["policy file"]["state"], "skipped")

    def test_policy_file_of_the_daemon(self):
        good = self.write("daemon.json", '{"version": 1}')
        for config, state in [({"file": good}, "ok"), ({"file": "daemon.json"}, "skipped"),
                              ({"file": good, "last_reload_successful": False}, "finding")]:
            with self.subTest(config), FakeDaemon(self.socket, STATUS_OF_TWO | {"config": config}):
                self.assertEqual(self.checks()["policy file"]["state"], state)
            os.unlink(self.socket)

    def test_daemon_of_another_version(self):
        with FakeDaemon(self.socket, STATUS_OF_TWO | {"version": "9.9"}):
            self.assertIn("version 9.9 answers", self.checks()["daemon"]["text"])

    def test_policy_file(self):
        self.assertEqual(self.checks("--config", self.write("a", '{"version": 1}'))["policy file"]["state"], "ok")
        self.assertIn("did you mean", self.checks("--config", self.write("b", '{"version": 1, "mod": "off"}'))["policy file"]["text"])

    def test_library(self):
        self.assertIn("loads", self.checks()["shim library"]["text"])
        self.assertEqual(self.checks(VRAMD_LIBRARY="/nowhere")["shim library"]["state"], "finding")
        self.assertIn("no shared library", self.checks(VRAMD_LIBRARY=self.write("x.so", "text"))["shim library"]["text"])

    def driver(self, source):
        """A folder with a libcuda.so.1 made from C."""
        if shutil.which("cc") is None:
            self.skipTest("no C compiler")
        (self.folder / "lib").mkdir(exist_ok=True)
        code = self.write("driver.c", source)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.folder / "lib/libcuda.so.1", code], check=True)
        return str(self.folder / "lib")

    def test_driver_that_crashes(self):
        folder = self.driver("#include <stdlib.h>\nint cuInit(unsigned f) { (void)f; abort(); }\n"
                             "int cuDriverGetVersion(int* v) { *v = 12040; return 0; }\n"
                             "int cuDeviceGetCount(int* n) { *n = 0; return 0; }\n")
        check = self.checks(LD_LIBRARY_PATH=folder)["driver library"]
        self.assertEqual(check["state"], "finding")
        self.assertIn("crashed", check["text"])

    def test_driver_that_refuses(self):
        folder = self.driver("int cuInit(unsigned f) { (void)f; return 100; }\n"
                             "int cuDriverGetVersion(int* v) { *v = 12040; return 0; }\n"
                             "int cuDeviceGetCount(int* n) { *n = 0; return 0; }\n")
        self.assertIn("error 100", self.checks(LD_LIBRARY_PATH=folder)["driver library"]["text"])

    def test_driver_with_two_kinds_of_gpu(self):
        folder = self.driver("""
#include <stddef.h>
#include <string.h>
int cuInit(unsigned f) { (void)f; return 0; }
int cuDriverGetVersion(int* v) { *v = 12040; return 0; }
int cuDeviceGetCount(int* n) { *n = 2; return 0; }
int cuDeviceGet(int* d, int i) { *d = i; return 0; }
int cuDeviceGetName(char* t, int n, int d) { (void)d; strncpy(t, "Test GPU", (size_t)n); return 0; }
int cuDeviceTotalMem_v2(size_t* b, int d) { (void)d; *b = (size_t)24 << 30; return 0; }
int cuDeviceGetAttribute(int* v, int a, int d) { *v = d == 0 && (a == 102 || a == 103); return 0; }
""")
        checks = self.checks(LD_LIBRARY_PATH=folder)
        self.assertIn("CUDA 12.4", checks["driver library"]["text"])
        self.assertEqual(checks["GPU 0"]["state"], "ok")
        self.assertIn("24 GiB", checks["GPU 0"]["text"])
        self.assertIn("no virtual memory management", checks["GPU 1"]["text"])

    def test_driver_of_the_daemons_simulated_gpu(self):
        folder = self.driver("int cuInit(unsigned f) { (void)f; return 77; }\n"
                             "int cuDriverGetVersion(int* v) { *v = 12040; return 0; }\n"
                             "int cuDeviceGetCount(int* n) { *n = 0; return 0; }\n")
        with FakeDaemon(self.socket, STATUS_OF_TWO | {"environment": {"LD_LIBRARY_PATH": folder}}):
            self.assertIn("error 77", self.checks()["driver library"]["text"])

    def test_environment(self):
        checks = self.checks(LD_PRELOAD="/nowhere/lib.so", CUDA_INJECTION64_PATH="/x.so", VRAMD_DISABLE="1", VRAMD_MODE="fast",
                             VRAMD_LIMIT="12GB", VRAMD_PRIORITY="batch")
        for name in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "VRAMD_DISABLE", "VRAMD_MODE", "VRAMD_LIMIT"):
            self.assertEqual(checks[name]["state"], "finding", name)
        self.assertEqual(checks["VRAMD_PRIORITY"]["state"], "ok")

    def test_environment_that_works_otherwise_than_it_says(self):
        checks = self.checks(VRAMD_MODE="full", VRAMD_LIMIT="12", VRAMD_DISABLE="no")
        self.assertIn("full is not built yet", checks["VRAMD_MODE"]["text"])
        self.assertIn("has no unit", checks["VRAMD_LIMIT"]["text"])
        self.assertIn('is "no"', checks["VRAMD_DISABLE"]["text"])

    def test_no_driver(self):
        check = self.checks()["driver library"]
        if "cannot open shared object file" not in check["text"]:
            self.skipTest("there is a driver here")
        self.assertIn("vramd --sim rtx-a5000-24g", check["remedy"])

    def test_people_read_lines(self):
        out = self.vramctl("doctor", code=1).stdout
        self.assertRegex(out, r"(?m)^finding  socket: .*\n +-> start vramd")
        self.assertRegex(out.splitlines()[-1], r"^\d+ findings?$")


class Reach(Case):
    """doctor --pid PID and doctor -- COMMAND."""

    def setUp(self):
        super().setUp()
        (self.folder / "lib").mkdir()
        self.shim = str(self.folder / "lib" / "libvramd.so")
        shutil.copy(os.path.realpath(PRELOAD), self.shim)
        self.environment["VRAMD_LIBRARY"] = self.shim

    def ask(self, *words, code=0, **environment):
        """The checks by name, and the one about reach."""
        done = self.vramctl("doctor", "--json", *words, code=code, **environment)
        checks = json.loads(done.stdout)
        self.assertEqual(checks[0]["check"], "reach")
        for check in checks:
            self.assertEqual(check["remedy"] != "", check["state"] == "finding", check)
        return {check["check"]: check for check in checks}, checks[0]

    def start(self, *command, ready=None, **environment):
        env = {"PATH": os.environ["PATH"]} | environment
        process = subprocess.Popen(command or ("sleep", "60"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        if ready is not None:
            self.assertEqual(process.stdout.readline().strip(), ready)
        name = (command or ("sleep",))[0].rsplit("/", 1)[-1]
        for _ in range(500):  # until it has become the program, and its libraries are loaded
            maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
            if "/" + name in maps and ("libc.so" in maps or ready is not None):
                break
            time.sleep(0.01)
        return process

    def about(self, process, code=1, **environment):
        return self.ask("--pid", str(process.pid), code=code, **environment)

    def with_daemon(self, *sessions):
        daemon = FakeDaemon(self.socket, STATUS_OF_TWO | {"config": {}, "sessions": list(sessions)})
        daemon.__enter__()
        self.addCleanup(daemon.__exit__, None, None, None)

    # --- a process ---

    def test_a_process_without(self):
        _, reach = self.about(self.start())
        self.assertRegex(reach["text"], r"^sleep \(pid \d+\): vramd is not in it: it was started without$")
        self.assertIn("vramctl run -- COMMAND", reach["remedy"])

    def test_a_process_with(self):
        process = self.start(LD_PRELOAD=self.shim)
        self.with_daemon()
        checks, reach = self.about(process, code=0)
        self.assertIn("vramd is loaded; the program has not used a GPU yet", reach["text"])
        self.assertEqual(checks["shim library"]["text"], self.shim)
        self.assertEqual(checks["daemon"]["state"], "ok")

    def test_a_session(self):
        process = self.start(LD_PRELOAD=self.shim)
        self.with_daemon({"id": 9, "pid": process.pid, "mode": "pool"})
        self.assertIn("vramd is active, session 9, mode pool", self.about(process, code=0)[1]["text"])

    def test_a_child_of_a_session_and_a_process_without_one(self):
        driver = self.folder / "lib" / "libcuda.so.1"
        shutil.copy(self.shim, driver)
        preload = f"{self.shim}:{driver}"
        parent = self.start("sh", "-c", "sleep 60 & echo $!; wait", LD_PRELOAD=preload)
        child = int(parent.stdout.readline())
        time.sleep(0.1)
        self.with_daemon({"id": 3, "pid": parent.pid, "mode": "pool"})
        checks, reach = self.ask("--pid", str(child))
        self.assertIn(f"a child of the session of pid {parent.pid}", reach["text"])
        self.assertEqual(checks["driver"]["text"], str(driver))
        self.assertIn("memory of its own", self.about(self.start(LD_PRELOAD=preload), code=0)[1]["text"])
        os.kill(child, 9)

    def test_switched_off(self):
        for variable, value, text in (("VRAMD_DISABLE", "1", "VRAMD_DISABLE is set"), ("VRAMD_MODE", "off", "VRAMD_MODE is off"),
                                      ("CUDA_INJECTION64_PATH", "/x.so", "a profiler hooks the driver")):
            _, reach = self.about(self.start(LD_PRELOAD=self.shim, **{variable: value}))
            self.assertIn("vramd is loaded and does nothing: ", reach["text"])
            self.assertIn(text, reach["text"])
            self.assertIn(variable, reach["remedy"])
        self.with_daemon()
        self.about(self.start(LD_PRELOAD=self.shim, VRAMD_DISABLE="0"), code=0)

    def test_a_library_that_was_replaced(self):
        process = self.start(LD_PRELOAD=self.shim)
        pathlib.Path(self.shim).unlink()
        shutil.copy(os.path.realpath(PRELOAD), self.shim)
        self.with_daemon()
        checks, _ = self.about(process, code=0)
        self.assertEqual(checks["shim library"]["text"],
                         f"{self.shim} has been replaced since the program started, which keeps the one it has")

    def test_a_library_that_is_not_there(self):
        _, reach = self.about(self.start(LD_PRELOAD="/nowhere/libvramd.so"))
        self.assertIn("LD_PRELOAD names /nowhere/libvramd.so, which is not there for this process", reach["text"])

    def static_program(self, mode=0o755):
        source = self.write("static.c", "#include <unistd.h>\nint main(void) { write(1, \"up\\n\", 3); sleep(60); return 0; }\n")
        program = str(self.folder / "static_program")
        built = subprocess.run(["cc", "-static", "-o", program, source], capture_output=True, text=True)
        if built.returncode != 0:
            self.skipTest("static programs cannot be built here")
        os.chmod(program, mode)
        return program

    def test_static_programs(self):
        program = self.static_program()
        for reach in (self.ask("--", program, code=1)[1],
                      self.about(self.start(program, ready="up", LD_PRELOAD=self.shim))[1]):
            self.assertIn("statically linked and never loads a library", reach["text"])

    def test_programs_of_musl(self):
        source = self.write("musl.c", "int main(void) { return 0; }\n")
        program = str(self.folder / "musl")
        subprocess.run(["cc", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1", "-o", program, source], check=True)
        self.assertIn("uses musl", self.ask("--", program, code=1)[1]["text"])

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_a_process_of_another_user(self):
        process = self.start()
        os.chmod(self.folder, 0o755)
        os.chown(self.folder / "lib", 65534, 65534)
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        program = str(self.folder / "vramctl")
        shutil.copy(VRAMCTL, program)
        done = subprocess.run([*drop, program, "doctor", "--pid", str(process.pid)], capture_output=True, text=True, timeout=60,
                              env=self.environment | {"HOME": "/"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("this user may not look at it", done.stdout)
        self.assertIn(f"sudo vramctl doctor --pid {process.pid}", done.stdout)

    def test_no_such_process(self):
        process = self.start()
        process.kill()
        while "State:\tZ" not in pathlib.Path(f"/proc/{process.pid}/status").read_text():
            time.sleep(0.001)
        self.assertIn("has ended", self.about(process)[1]["text"])  # not waited for yet
        process.wait()
        self.assertIn(f"no process here has pid {process.pid}", self.about(process)[1]["text"])

    # --- a command ---

    def test_a_command(self):
        self.with_daemon()
        marker = self.folder / "ran"
        checks, reach = self.ask("--", "touch", str(marker))
        self.assertIn("vramd would be active in it: vramctl run -- touch ...", reach["text"])
        self.assertEqual(checks["shim library"]["state"], "ok")
        self.assertFalse(marker.exists())

    def test_commands_that_cannot_be_reached(self):
        self.assertIn("is not in PATH", self.ask("--", "no-such-program", code=1)[1]["text"])
        self.assertIn("no libvramd.so at /nowhere", self.ask("--", "true", code=1, VRAMD_LIBRARY="/nowhere")[1]["text"])
        self.assertIn("VRAMD_DISABLE is set", self.ask("--", "true", code=1, VRAMD_DISABLE="1")[1]["text"])
        checks, _ = self.ask("--", "true", code=1, LD_PRELOAD=os.path.realpath(PRELOAD))
        self.assertNotIn("LD_PRELOAD", checks)  # not called libvramd.so
        (self.folder / "other").mkdir()
        other = shutil.copy(self.shim, self.folder / "other" / "libvramd.so")
        checks, _ = self.ask("--", "true", code=1, LD_PRELOAD=str(other))
        self.assertIn("another libvramd.so", checks["LD_PRELOAD"]["text"])

    def test_what_frameworks_do(self):
        self.with_daemon()
        program = self.write("train.py", "#!/usr/bin/env python3\n", 0o755)
        for command in (program, "python3"):
            checks, _ = self.ask("--", command)
            self.assertIn("vramctl run sets it", checks["XLA_PYTHON_CLIENT_PREALLOCATE"]["text"])
            checks, _ = self.ask("--", command, code=1, XLA_PYTHON_CLIENT_PREALLOCATE="true", TF_FORCE_GPU_ALLOW_GROWTH="true",
                                 PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
            self.assertEqual([checks[name]["state"] for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "TF_FORCE_GPU_ALLOW_GROWTH",
                                                                 "PYTORCH_CUDA_ALLOC_CONF")], ["finding", "ok", "finding"])
        self.assertNotIn("XLA_PYTHON_CLIENT_PREALLOCATE", self.ask("--", "true")[0])

    def test_wrong_usage(self):
        self.vramctl("doctor", "--", code=2)
        self.vramctl("doctor", "--pid", "0", code=2)
        self.vramctl("doctor", "--pid", "5", "--", "true", code=2)
        self.vramctl("doctor", "--pid", "5", "--config", "x", code=2)


class Surface(Case):
    def test_version(self):
        self.assertRegex(self.vramctl("--version").stdout, r"^vramctl \d+\.\d+\.\d+\n$")

    def test_no_arguments_show_the_help_and_are_wrong_usage(self):
        self.assertIn("Subcommands:", self.vramctl(code=2).stdout)

    def test_unknown_command_and_option(self):
        self.assertIn("vramctl --help", self.vramctl("stauts", code=2).stderr)
        self.assertIn("vramctl status --help", self.vramctl("status", "--jsn", code=2).stderr)
        self.assertIn("vramctl policy check --help", self.vramctl("policy", "check", "--x", "f", code=2).stderr)

    @unittest.skipUnless(HELP == "compare-help", "another version of CLI11 lays its help out differently")
    def test_help_is_golden(self):
        for words in ((), ("run",), ("status",), ("doctor",), ("calibrate",), ("policy",), ("policy", "check"), ("policy", "reload"),
                      ("who",), ("ps",), ("trim",), ("limit",), ("completion",)):
            golden = pathlib.Path(GOLDEN, "-".join(("vramctl",) + words) + ".txt")
            got = self.vramctl(*words, "--help").stdout
            if os.environ.get("VRAMD_UPDATE_GOLDEN") == "1":
                golden.write_text(got)
            self.assertEqual(got, golden.read_text(), golden)

    def test_completion_knows_what_the_help_knows(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.vramctl("completion", shell).stdout
            for command in ("run", "status", "doctor", "calibrate", "policy", "completion", "check"):
                self.assertIn(command, script)
            for option in re.findall(r"--([a-z-]+)", self.vramctl("run", "--help").stdout.split("Exit codes")[0]):
                self.assertIn(option, script)
            self.assertNotIn("__probe", script)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes(self):
        script = self.vramctl("completion", "bash").stdout

        def complete(*words):
            line = " ".join(f"'{word}'" for word in words)
            code = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _vramctl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            return subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True).stdout.split()

        self.assertEqual(complete("vramctl", "st"), ["status"])
        self.assertEqual(complete("vramctl", "run", "--mo"), ["--mode"])
        self.assertEqual(complete("vramctl", "run", "--mode", ""), ["off", "observe", "pool"])
        self.assertEqual(complete("vramctl", "policy", "c"), ["check"])
        self.assertEqual(complete("vramctl", "completion", "z"), ["zsh"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
