"""Starting, refusing to start, HTTP, metrics, and what a service manager sees."""
import http.client
import os
import shutil
import stat
import unittest

from daemon_wire import *


def run(*flags, **environment):
    """(exit code, stderr + stdout) of a daemon that is expected to end by itself, without having touched a GPU."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("VRAMD_", "SIM_"))}
    with tempfile.TemporaryDirectory(prefix="vramd-test-") as machine:
        done = subprocess.run([VRAMD, *flags], env={**clean, "SIM_DIR": machine, **environment}, timeout=30,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert os.listdir(machine) == [], done.stdout
    return done.returncode, done.stdout


class Refusals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="vramd-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.socket = os.path.join(self.folder, "s")
        self.sim = ("--sim", "rtx-a5000-24g", "--sim-dir", SIM_DIR, "--web.listen-address", "127.0.0.1:0")

    def assert_refused(self, code, *words, flags=(), **environment):
        got, output = run("--socket", self.socket, *flags, **environment)
        self.assertEqual(got, code, output)
        for word in words:
            self.assertIn(word, output)

    def test_no_socket_directory(self):
        self.socket = os.path.join(self.folder, "missing", "s")
        self.assert_refused(2, "mkdir -p", "--socket", "XDG_RUNTIME_DIR", flags=self.sim)

    def test_a_socket_path_that_is_no_socket_or_too_long(self):
        with open(self.socket, "w"):
            pass
        self.assert_refused(2, "no socket", flags=self.sim)
        self.assertTrue(os.path.exists(self.socket))
        self.socket = os.path.join(self.folder, "x" * 120)
        self.assert_refused(2, "shorter", flags=self.sim)

    def test_a_directory_that_everybody_may_write_to(self):
        os.chmod(self.folder, 0o777)
        self.assert_refused(2, "writable for everybody", flags=self.sim)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_a_directory_of_somebody_else(self):
        command = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", VRAMD]
        place = tempfile.mkdtemp(prefix="vramd-test-")
        self.addCleanup(shutil.rmtree, place)
        os.chmod(place, 0o755)
        done = subprocess.run(command + ["--socket", place + "/s", *self.sim], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30)
        if "Permission denied" in done.stdout and VRAMD in done.stdout:
            self.skipTest("the build folder is not readable for others")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("not writable", done.stdout)

    def test_no_driver(self):
        self.assert_refused(1, "cannot open the driver", "--sim",
                            flags=("--driver", "libnosuchcuda.so.1", "--web.listen-address", "127.0.0.1:0"))
        self.assertFalse(os.path.exists(self.socket))

    def test_no_simulator(self):
        self.assert_refused(1, "libcuda.so.1", "--sim-dir", flags=("--sim", "rtx-a5000-24g", "--sim-dir", self.folder))
        self.assert_refused(2, "PROFILE", flags=("--sim", "rtx-a5000-24gx99", "--sim-dir", SIM_DIR))

    def test_bad_policy(self):
        path = os.path.join(self.folder, "bad.json")
        with open(path, "w") as file:
            file.write('{"version": 1,\n "moode": "pool",\n "pool": {"retain": "9 bananas"}}')
        self.assert_refused(2, "bad.json:2", "moode", "retain", flags=("--config", path, *self.sim))
        self.assert_refused(2, "start without it (--config, VRAMD_CONF)", flags=self.sim, VRAMD_CONF=path)
        self.assertEqual(run("--check-config", "--config", path)[0], 2)
        self.assertEqual(run("--check-config", VRAMD_CONF=path)[0], 2)
        self.assert_refused(2, flags=("--config", os.path.join(self.folder, "none.json"), *self.sim))

    def test_good_policy(self):
        path = os.path.join(self.folder, "good.json")
        with open(path, "w") as file:
            file.write('{"version": 1}')
        code, output = run("--check-config", "--config", path)
        self.assertEqual(code, 0, output)
        self.assertIn("ok", output)

    def test_usage(self):
        code, output = run("--no-such-flag")
        self.assertEqual(code, 2)
        self.assertTrue(output.startswith("vramd: "), output)
        for level, expected in (("warn", 0), ("warning", 0), ("loud", 2)):
            self.assertEqual(run("--log-level", level, "--check-config")[0], expected, level)
            self.assertEqual(run("--check-config", VRAMD_LOG_LEVEL=level)[0], expected, level)
        for word in ("--socket", "VRAMD_SOCKET", "--sim", "--web.listen-address", "SIGHUP"):
            self.assertIn(word, run("--help")[1])
        code, output = run("--version")
        self.assertEqual((code, output.split()[0]), (0, "vramd"))
        self.assert_refused(2, "ADDRESS:PORT", flags=(*self.sim[:4], "--web.listen-address", "nonsense"))

    def test_a_simulation_that_cannot_be(self):
        for sim in ("rtx-a5000-24gx9", "rtx-a5000-24gx0"):
            self.assert_refused(2, "N from 1 to 8", flags=("--sim", sim, *self.sim[2:]))
        bogus = ("--sim", "bogus", *self.sim[2:])
        self.assert_refused(2, "known profiles: ", "--sim bogus: ", "no GPU here", flags=bogus)
        self.assertNotIn("install the GPU driver", run("--socket", self.socket, *bogus)[1])

    def test_a_simulation_that_cannot_be_opened(self):
        self.assert_refused(2, "no GPU here", "CUDA_VISIBLE_DEVICES", flags=self.sim, CUDA_VISIBLE_DEVICES="",
                            SIM_DIR=self.folder)
        with open(os.path.join(self.folder, "libcuda.so.1"), "w") as file:
            file.write("no library")
        self.assert_refused(2, "cannot open the driver", "--sim-dir",
                            flags=("--sim", "tiny-1g", "--sim-dir", self.folder, *self.sim[4:]))


class Neighbours(DaemonTest):
    def test_a_second_daemon_is_refused(self):
        flags = ("--socket", self.daemon.socket, "--sim", "rtx-a5000-24g", "--sim-dir", SIM_DIR)
        code, output = run(*flags, "--web.listen-address", "127.0.0.1:0")
        self.assertEqual(code, 2, output)
        self.assertIn("--socket PATH", output)
        os.unlink(self.daemon.socket + ".lock")  # somebody cleaned up: the socket itself still answers
        code, output = run(*flags, "--web.listen-address", "127.0.0.1:0")
        self.assertEqual(code, 2, output)
        self.assertIn(f"pid {self.daemon.process.pid}", output)
        self.assertEqual(self.session().memory_info()[0], OK)

    def test_a_port_in_use(self):
        other = os.path.join(self.daemon.folder, "other")
        code, output = run("--socket", other, "--sim", "rtx-a5000-24g", "--sim-dir", SIM_DIR,
                           "--web.listen-address", self.daemon.http)
        self.assertEqual(code, 2, output)
        self.assertIn(self.daemon.http, output)
        self.assertFalse(os.path.exists(other))


class Service(DaemonTest):
    profile = "rtx-a5000-24gx2"

    def test_the_socket_is_for_everybody(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.daemon.socket).st_mode), 0o666)

    def test_status_says_what_jobs_need(self):
        status = self.daemon.status()
        self.assertEqual(status["environment"], {"SIM_NAME": self.daemon.name, "SIM_PROFILE": "rtx-a5000-24g",
                                                 "SIM_DEVICES": "2", "LD_LIBRARY_PATH": os.path.abspath(SIM_DIR)})
        self.assertEqual(status["pid"], self.daemon.process.pid)
        self.assertEqual(len(status["devices"]), 2)
        self.assertEqual(len({device["uuid"] for device in status["devices"]}), 2)
        for device in status["devices"]:
            self.assertEqual(set(device), {"index", "uuid", "name", "pci_bus_id", "total", "free", "reserved", "leased",
                                           "cached", "charged", "stranded", "context", "sessions"})
        client = self.session(job=b"night run")
        client.grant(2 * MIB, device=1)
        session = self.daemon.status()["sessions"][0]
        self.assertEqual((session["pid"], session["uid"], session["job"]), (os.getpid(), os.getuid(), "night run"))
        self.assertEqual([share["leased"] for share in session["devices"]], [0, 2 * MIB])

    def test_pages(self):
        self.assertEqual(self.daemon.get("/-/healthy")[0], 200)
        self.assertEqual(self.daemon.get("/-/ready")[0], 200)
        self.assertIn("/metrics", self.daemon.get("/")[1])
        self.assertEqual(self.daemon.get("/nothing")[0], 404)
        page = json.loads(self.daemon.get("/api/v1/status?x=1")[1])
        self.assertEqual(set(page), set(self.daemon.status()))

    def test_only_get_and_head_bounded(self):
        host, port = self.daemon.http.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        connection.request("POST", "/metrics", b"x")
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.getheader("Allow")), (405, "GET, HEAD"))
        reply.read()
        connection.request("HEAD", "/metrics")
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.read()), (200, b""))
        connection.close()
        for request in (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n",
                        b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=10) as raw:
                raw.sendall(request)
                self.assertRegex(raw.recv(100), b"HTTP/1.1 4\\d\\d")
        self.assertEqual(self.daemon.get("/-/healthy")[0], 200)

    def test_metrics_are_clean_and_agree_with_the_status(self):
        self.session().grant()
        code, text = self.daemon.get("/metrics")
        self.assertEqual(code, 200)
        for name in ("vramd_build_info", "vramd_device_info", "vramd_device_memory_total_bytes",
                     "vramd_device_memory_free_bytes", "vramd_pool_reserved_bytes", "vramd_pool_leased_bytes",
                     "vramd_pool_cached_bytes", 'vramd_pool_stranded_bytes{gpu="0",', "vramd_sessions",
                     "vramd_allocation_requests_total", "vramd_chunks_granted_total", "vramd_chunks_recycled_total",
                     "vramd_config_last_reload_success_timestamp_seconds", "process_resident_memory_bytes"):
            self.assertIn("\n" + name, text)
        self.assertEqual(self.daemon.metric("vramd_pool_leased_bytes"), 32 * MIB)
        self.assertEqual(self.daemon.metric("vramd_sessions"), 2)  # on each of two GPUs
        promtool = shutil.which("promtool")
        if promtool is not None:
            done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, done.stdout), (0, ""))


class Notify(unittest.TestCase):
    def test_the_service_manager_is_told(self):
        folder = tempfile.mkdtemp(prefix="vramd-test-")
        self.addCleanup(shutil.rmtree, folder)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.settimeout(20)
            manager.bind(os.path.join(folder, "notify"))
            os.environ["NOTIFY_SOCKET"] = os.path.join(folder, "notify")
            try:
                daemon = Daemon()
            finally:
                del os.environ["NOTIFY_SOCKET"]
            self.assertEqual(manager.recv(1000), b"READY=1")
            daemon.process.send_signal(signal.SIGHUP)
            self.assertRegex(manager.recv(1000), b"^RELOADING=1\nMONOTONIC_USEC=\\d+$")
            self.assertEqual(manager.recv(1000), b"READY=1")
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(manager.recv(1000), b"STOPPING=1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
