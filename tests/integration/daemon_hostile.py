"""Peers that are deaf, broken, flooding or hostile: dropped and counted; the daemon lives and others notice nothing."""
import os
import random
import unittest

from daemon_wire import *


class Hostile(DaemonTest):
    config = {"version": 1, "pool": {"retain": "1GiB", "headroom": "0B"}}

    def setUp(self):
        super().setUp()
        self.bystander = self.session()
        self.bystander.acknowledge(self.bystander.grant()[1])

    def tearDown(self):
        self.assertEqual(self.bystander.grant(2 * MIB)[0], OK, "a bystander was harmed")
        self.assert_exact()
        super().tearDown()

    def dropped(self, reason):
        return self.daemon.metric(f'vramd_connections_dropped_total{{reason="{reason}"}}')

    def assert_dropped(self, data, reason="malformed", greeted=True):
        before = self.dropped(reason)
        client = self.session() if greeted else self.connect()
        client.send(data)
        self.assert_closed(client)
        self.assertEqual(self.dropped(reason), before + 1, data)

    def test_what_is_no_message_closes_the_connection(self):
        for greeted in (False, True):
            self.assert_dropped(b"x", greeted=greeted)
            self.assert_dropped(b"GET / HTTP/1.1\r\n\r\n", greeted=greeted)
            self.assert_dropped(packet(GRANT, bytes(16), magic=1), greeted=greeted)
            self.assert_dropped(packet(GRANT, bytes(16), size=8), greeted=greeted)
            self.assert_dropped(packet(GRANT, bytes(16), size=4000), greeted=greeted)
            self.assert_dropped(bytes(4096), greeted=greeted)

    def test_wrong_sizes_close_the_connection(self):
        for kind in (GRANT, ACKNOWLEDGE, GIVE_BACK, CHARGE, MEMORY_INFO):
            self.assert_dropped(packet(kind, b"1234"))
        self.assert_dropped(packet(GIVE_BACK, struct.pack("<II64Q", 65, 0, *[0] * 64)))
        self.assert_dropped(packet(GIVE_BACK, struct.pack("<II64Q", 0xFFFFFFFF, 0, *[0] * 64)))

    def test_messages_that_only_the_daemon_sends_and_a_second_hello_close_the_connection(self):
        for kind in (HELLO_REPLY, GRANT_REPLY, CHARGE_REPLY, MEMORY_INFO_REPLY, STATUS_REPLY, ERROR_REPLY, HELLO):
            self.assert_dropped(packet(kind, bytes(400)))
        self.assert_dropped(packet(GRANT, bytes(16)), greeted=False)

    def test_a_longer_message_of_a_newer_peer_is_understood(self):
        client = self.session()
        self.assertEqual(client.ask(MEMORY_INFO, bytes(8) + b"new field")[2], OK)

    def test_an_unknown_message_is_answered_with_unsupported(self):
        client = self.session()
        self.assertEqual(client.ask(4711)[0::2][:2], (ERROR_REPLY, UNSUPPORTED))
        self.assertEqual(client.memory_info()[0], OK)

    def test_descriptors_from_a_peer_are_not_kept(self):
        before = self.daemon.metric("process_open_fds")
        client = self.session()
        with open(os.devnull) as file:
            socket.send_fds(client.socket, [packet(MEMORY_INFO, bytes(8))], [file.fileno()] * 10)
        self.assert_closed(client)
        self.assertEqual(self.dropped("unexpected_descriptor"), 1)
        self.daemon.eventually(lambda _: self.daemon.metric("process_open_fds") <= before + 1)

    def test_versions_that_do_not_meet(self):
        client = self.connect()
        self.assertEqual(client.hello(versions=(2, 9)), VERSION_MISMATCH)
        self.assert_closed(client)
        newer = self.connect()
        self.assertEqual(newer.hello(versions=(1, 9)), OK)

    def test_impossible_hellos(self):
        client = self.connect()
        self.assertEqual(client.hello(role=9), MALFORMED)
        self.assert_closed(client)

    def test_an_admin_is_no_session(self):
        admin = self.connect()
        self.assertEqual(admin.hello(ADMIN), OK)
        self.assertEqual(admin.grant()[0], REFUSED)
        self.assertEqual(len(admin.status()["sessions"]), 1)

    def test_a_peer_that_reads_late_is_not_deaf(self):
        client = self.session()
        client.socket.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while True:  # until the daemon reads no more
                client.send(packet(MEMORY_INFO, bytes(8), sent))
                sent += 1
        client.socket.settimeout(10)
        self.assertGreater(sent, 100)
        self.assertEqual([client.receive()[1] for _ in range(sent)], list(range(sent)))
        self.assertEqual(self.dropped("deaf"), 0)

    def test_a_deaf_peer_is_dropped(self):
        client = self.session()
        with self.assertRaises(Closed):
            for _ in range(100000):
                client.send(packet(MEMORY_INFO, bytes(8)))
        self.assertEqual(self.dropped("deaf"), 1)
        self.daemon.eventually(lambda status: len(status["sessions"]) == 1)

    def test_a_deaf_peer_with_descriptors_in_flight_is_bounded(self):
        client = self.session()
        for number in range(70):
            client.send(packet(GRANT, struct.pack("<IIQ", 0, 0, 2 * MIB), number))
        self.daemon.eventually(lambda status: status["devices"][0]["leased"] == (32 + 64 * 2) * MIB)
        self.assertEqual(self.bystander.grant(2 * MIB)[0], OK)

    def test_a_flood_does_not_starve_others(self):
        def flood():
            client = self.daemon.session()
            sender = os.fork()
            if sender == 0:
                while True:
                    client.send(packet(GRANT, struct.pack("<IIQ", 0, 0, 3)))
            while True:
                client.socket.recv(2048)

        read_end, write_end = os.pipe()
        pids = []
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                try:
                    flood()
                finally:
                    os._exit(0)
            pids.append(pid)
        try:
            self.daemon.eventually(lambda status: len(status["sessions"]) == 3)
            slowest = 0.0
            for _ in range(50):
                begin = time.monotonic()
                self.assertEqual(self.bystander.memory_info()[0], OK)
                slowest = max(slowest, time.monotonic() - begin)
            self.assertLess(slowest, 1.0)
        finally:
            for pid in pids:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            os.close(read_end)
            os.close(write_end)
        self.daemon.eventually(lambda status: len(status["sessions"]) == 1)

    def test_harmless_nonsense_is_bounded(self):
        client = self.session()
        with self.assertRaises(Closed):
            for _ in range(100000):
                client.acknowledge(99)
        self.assertEqual(self.dropped("violations"), 1)

    def test_nothing_after_goodbye(self):
        client = self.session()
        client.goodbye()
        client.send(packet(GRANT, struct.pack("<IIQ", 0, 0, 32 * MIB), 7))
        self.assertEqual(client.receive()[2], REFUSED)
        self.assertEqual(self.daemon.device()["leased"], 32 * MIB)

    def test_too_many_sessions_of_one_user(self):
        clients = [self.session() for _ in range(63)]
        client = self.connect()
        self.assertEqual(client.hello(uuids=self.daemon.uuids), TOO_MANY)
        self.assert_closed(client)
        clients[0].close()
        self.daemon.eventually(lambda status: len(status["sessions"]) == 63)
        self.assertEqual(self.session().memory_info()[0], OK)

    def test_random_bytes(self):
        random.seed(4)
        for number in range(300):
            client = Client(self.daemon.socket)
            try:
                if number % 2:
                    client.hello(uuids=self.daemon.uuids, driver_version=self.daemon.driver_version)
                for _ in range(5):
                    body = random.randbytes(random.choice((0, 4, 8, 16, 520, 900)))
                    client.send(packet(random.randrange(1, 15), body) if random.random() < 0.8 else body + b"x")
            except Closed:
                pass
            client.close()
        self.daemon.eventually(lambda status: len(status["sessions"]) == 1, within=20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
