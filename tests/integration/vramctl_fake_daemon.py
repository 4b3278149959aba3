"""A daemon for tests of vramctl: answers hello and status on a SEQPACKET socket, well or badly.

The layout is that of allocator/protocol/messages.hpp, written down a second time on purpose: a change there that breaks
older peers breaks this.
"""
import array
import json
import os
import socket
import struct
import threading

MAGIC = 0x444D5256
HELLO, HELLO_REPLY, STATUS, STATUS_REPLY, ERROR_REPLY = 1, 2, 12, 13, 14
OK, VERSION_MISMATCH = 0, 3
ROLE_ADMIN = 2


def message(kind, request, body=b"", status=OK):
    return struct.pack("=IHHII", MAGIC, kind, 16 + len(body), request, status) + body


class FakeDaemon:
    """`behaviour`: good, deaf, hangup, nonsense, old, without_fd, short_text, no_json."""

    def __init__(self, path, status=None, behaviour="good"):
        self.status = {} if status is None else status
        self.behaviour = behaviour
        self.requests = []
        self.problems = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # close() alone does not wake accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        assert not self.problems, self.problems

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self.talk(connection)
                except Exception as problem:  # shown when the test ends
                    self.problems.append(repr(problem))

    def talk(self, connection):
        if self.behaviour == "hangup":
            return
        while packet := connection.recv(1024):
            magic, kind, size, request, _ = struct.unpack_from("=IHHII", packet)
            assert magic == MAGIC and size == len(packet), packet
            self.requests.append(kind)
            if self.behaviour == "deaf":
                continue
            if self.behaviour == "nonsense":
                connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            elif self.behaviour == "old":
                connection.send(message(ERROR_REPLY, request, status=VERSION_MISMATCH))
            elif kind == HELLO:
                assert len(packet) == 376, len(packet)
                low, high, role = struct.unpack_from("=HHI", packet, 16)
                assert low <= 1 <= high and role == ROLE_ADMIN
                connection.send(message(HELLO_REPLY, request, struct.pack("=HHIQQQII", 1, 0, 3, 0, 0, 77, 0, 0) + bytes(384)))
            elif kind == STATUS:
                self.send_status(connection, request)
            else:
                raise AssertionError(f"unexpected message {kind}")

    def send_status(self, connection, request):
        text = b"this is no JSON" if self.behaviour == "no_json" else json.dumps(self.status).encode()
        said = len(text) + (1000 if self.behaviour == "short_text" else 0)
        reply = message(STATUS_REPLY, request, struct.pack("=Q", said))
        if self.behaviour == "without_fd":
            connection.send(reply)
            return
        memory = os.memfd_create("status")
        os.write(memory, text)
        connection.sendmsg([reply], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
        os.close(memory)
