"""What the tests of the daemon share: a daemon on a simulated GPU of its own, and a raw client of its protocol.

Written against the bytes of allocator/protocol/messages.hpp, not against our own C++: it is a second opinion.
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.request

MIB = 1 << 20
MAGIC = 0x444D5256
(HELLO, HELLO_REPLY, GRANT, GRANT_REPLY, ACKNOWLEDGE, GIVE_BACK, CHARGE, CHARGE_REPLY, MEMORY_INFO, MEMORY_INFO_REPLY,
 GOODBYE, STATUS, STATUS_REPLY, ERROR_REPLY) = range(1, 15)
(OK, UNSUPPORTED, MALFORMED, VERSION_MISMATCH, OUT_OF_MEMORY, OVER_LIMIT, NO_DEVICE, REFUSED, TOO_MANY,
 INTERNAL) = range(10)
SESSION, ADMIN = 1, 2
UNSET, OFF, OBSERVE, POOL, FULL = range(5)
SOURCE_NONE, SOURCE_DAEMON, SOURCE_LOCAL, SOURCE_NATIVE = range(4)
LOCAL_CHUNK, NATIVE, QUESTION = 1, 2, 3
NO_LIMIT = (1 << 64) - 1
HEADER = struct.Struct("<IHHII")

VRAMD = os.environ["VRAMD_TEST_DAEMON"]
SIM_DIR = os.environ["VRAMD_TEST_SIM_DIR"]


def packet(kind, body=b"", request=0, magic=MAGIC, size=None):
    length = HEADER.size + len(body)
    return HEADER.pack(magic, kind, length if size is None else size, request, 0) + body


class Closed(Exception):
    """The daemon has closed the connection."""


class Client:
    """One connection. Descriptors received are owned by the client and closed with it, those of chunks with the chunk."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.request = 0
        self.fds = []
        self.chunk_fds = {}
        self.acknowledged = set()

    def close(self):
        self.socket.close()
        for fd in self.fds + list(self.chunk_fds.values()):
            os.close(fd)
        self.fds, self.chunk_fds = [], {}

    def send(self, data):
        try:
            self.socket.send(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive(self):
        """(type, request, status, body, fds)"""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, 2048, 64)
        except ConnectionResetError:
            raise Closed from None
        if not data:
            raise Closed
        self.fds += fds
        magic, kind, size, request, status = HEADER.unpack_from(data)
        assert magic == MAGIC and size == len(data), (magic, size, len(data))
        return kind, request, status, data[HEADER.size:], fds

    def ask(self, kind, body=b""):
        self.request += 1
        self.send(packet(kind, body, self.request))
        reply = self.receive()
        assert reply[1] == self.request, reply
        return reply

    def hello(self, role=SESSION, uuids=(), driver_version=0, versions=(1, 1), limit=0, mode=UNSET, job=b""):
        devices = b"".join(uuids).ljust(256, b"\0")
        body = struct.pack("<HHIQQIIiI", *versions, role, 0, limit, mode, 0, driver_version, len(uuids))
        kind, _, status, reply, _ = self.ask(HELLO, body + devices + job.ljust(64, b"\0"))
        assert kind == HELLO_REPLY
        self.mode, self.session = struct.unpack_from("<I", reply, 4)[0], struct.unpack_from("<Q", reply, 16)[0]
        count = struct.unpack_from("<I", reply, 32)[0]
        self.devices = [struct.unpack_from("<IIQ", reply, 40 + 16 * i) for i in range(count)]
        return status

    def grant(self, size=32 * MIB, device=0):
        """(status, chunk, fresh, fd)"""
        kind, _, status, body, fds = self.ask(GRANT, struct.pack("<IIQ", device, 0, size))
        if kind == ERROR_REPLY:
            return status, 0, False, None
        chunk, _, flags, _ = struct.unpack("<QQII", body)
        assert (status == OK) == (len(fds) == 1), (status, fds)
        if fds:
            self.fds.remove(fds[0])
            self.chunk_fds[chunk] = fds[0]
        return status, chunk, bool(flags & 1), fds[0] if fds else None

    def close_fd(self, chunk):
        """As after an import: the descriptor alone keeps a chunk's memory alive."""
        if chunk in self.chunk_fds:
            os.close(self.chunk_fds.pop(chunk))

    def acknowledge(self, chunk):
        self.acknowledged.add(chunk)
        self.send(packet(ACKNOWLEDGE, struct.pack("<Q", chunk)))

    def give_back(self, *chunks):
        """As a session does that has used them."""
        for chunk in chunks:
            self.close_fd(chunk)
            if chunk not in self.acknowledged:
                self.acknowledge(chunk)
        self.give_back_unused(*chunks)

    def give_back_unused(self, *chunks):
        self.send(packet(GIVE_BACK, struct.pack("<II64Q", len(chunks), 0, *chunks, *[0] * (64 - len(chunks)))))

    def charge(self, size, device=0, kind=LOCAL_CHUNK):
        return self.ask(CHARGE, struct.pack("<IIq", device, kind, size))[2]

    def memory_info(self, device=0):
        """(status, total, free, limit, used)"""
        _, _, status, body, _ = self.ask(MEMORY_INFO, struct.pack("<II", device, 0))
        return (status,) + struct.unpack("<4Q", body)

    def goodbye(self):
        self.send(packet(GOODBYE))

    def status(self):
        kind, _, status, _, fds = self.ask(STATUS)
        assert (kind, status, len(fds)) == (STATUS_REPLY, OK, 1)
        with os.fdopen(os.dup(fds[0])) as file:
            return json.load(file)


class Daemon:
    """vramd on a simulated machine of its own, in a runtime folder of its own."""

    count = 0

    def __init__(self, *flags, profile="rtx-a5000-24g", config=None, wait=True, path=None):
        Daemon.count += 1
        self.folder = tempfile.mkdtemp(prefix="vramd-test-")
        self.socket = path or os.path.join(self.folder, "vramd.sock")
        self.config = os.path.join(self.folder, "vramd.json")
        self.name = f"vramdtest-{os.getpid()}-{Daemon.count}"
        self.log_path = os.path.join(self.folder, "log")
        command = [VRAMD, "--socket", self.socket, "--sim", profile, "--sim-dir", SIM_DIR, "--web.listen-address",
                   "127.0.0.1:0", "--log-level", "debug"]
        if config is not None:
            self.write_config(config)
            command += ["--config", self.config]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("VRAMD_", "SIM_"))}
        environment["SIM_NAME"] = self.name
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command + list(flags), env=environment, stderr=log)
        if wait:
            self.admin = self.connect_when_up()
            self.admin.hello(ADMIN)
            first = self.status()
            self.driver_version = first["driver_version"]
            self.uuids = [bytes.fromhex(device["uuid"][4:].replace("-", "")) for device in first["devices"]]
            self.http = first["http"]

    def write_config(self, config):
        with open(self.config, "w") as file:
            file.write(config if isinstance(config, str) else json.dumps(config))

    def connect_when_up(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                return Client(self.socket)
            except OSError:  # no socket yet
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError("the daemon did not come up:\n" + self.log()) from None
                time.sleep(0.01)

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def session(self, **wishes):
        client = Client(self.socket)
        arguments = {"uuids": self.uuids, "driver_version": self.driver_version, **wishes}
        status = client.hello(SESSION, **arguments)
        assert status == OK, status
        return client

    def status(self):
        return self.admin.status()

    def device(self, index=0):
        return self.status()["devices"][index]

    def metric(self, name):
        """Sum over the samples whose text begins with `name`."""
        values = [line.rsplit(" ", 1)[1] for line in self.get("/metrics")[1].splitlines() if line.startswith(name)]
        assert values, name
        return sum(map(float, values))

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def eventually(self, condition, within=10.0):
        """Waits until condition(status) holds and returns the seconds it took."""
        begin = time.monotonic()
        while True:
            status = self.status()
            took = time.monotonic() - begin
            if condition(status):
                return took
            assert took < within, (json.dumps(status, indent=1), self.log())
            time.sleep(0.005)

    def stop(self):
        with contextlib.suppress(AttributeError):
            self.admin.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.last_words = self.log()
        for path in glob.glob(f"/dev/shm/*{self.name}*"):
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.process.returncode


@contextlib.contextmanager
def child(work):
    """Runs work() in a forked process that then waits to be killed. Yields its pid once work() is done."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read_end)
            keep = work()  # what it holds lives as long as the process
            os.write(write_end, b"y")
            while keep is not signal:
                signal.pause()
        finally:
            os._exit(code)
    os.close(write_end)
    try:
        assert os.read(read_end, 1) == b"y", "the child failed"
        yield pid
    finally:
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class DaemonTest(unittest.TestCase):
    """A test that has one daemon; `flags` and `config` of the class say how it is started."""

    flags = ()
    config = None
    profile = "rtx-a5000-24g"

    def setUp(self):
        self.daemon = Daemon(*self.flags, profile=self.profile, config=self.config)
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.close()
        code = self.daemon.stop()
        self.assertEqual(code, 0, self.daemon.last_words)

    def session(self, **wishes):
        client = self.daemon.session(**wishes)
        self.clients.append(client)
        return client

    def connect(self):
        client = Client(self.daemon.socket)
        self.clients.append(client)
        return client

    def assert_closed(self, client):
        with self.assertRaises(Closed):
            while True:
                client.receive()

    def assert_exact(self):
        """Granted = leased = the sum over the sessions."""
        status = self.daemon.status()
        for device in status["devices"]:
            shares = [share for session in status["sessions"] for share in session["devices"]
                      if share["index"] == device["index"]]
            self.assertEqual(device["leased"], sum(share["leased"] for share in shares))
            self.assertEqual(device["reserved"], device["leased"] + device["cached"])
        return status
