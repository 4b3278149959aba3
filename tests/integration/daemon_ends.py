"""Who dies, what happens: bytes come back within a second, nothing dirty is recycled, others notice nothing."""
import os
import signal
import unittest

from daemon_wire import *


class Deaths(DaemonTest):
    config = {"version": 1, "pool": {"retain": "1GiB", "headroom": "0B"}}

    def test_a_killed_session_gives_its_bytes_back_within_a_second_and_nothing_is_recycled(self):
        other = self.session()
        kept = other.grant()[1]
        other.acknowledge(kept)
        before = self.daemon.device()["free"]
        chunks = []

        def hold_memory():
            client = self.daemon.session()
            chunk = client.grant()[1]
            client.acknowledge(chunk)
            client.grant()  # not acknowledged
            client.memory_info()  # the acknowledgement has been read when this is answered
            return client

        with child(hold_memory) as pid:
            self.daemon.eventually(lambda status: status["devices"][0]["leased"] == 96 * MIB)
            chunks += [share["leased"] for share in self.daemon.status()["sessions"][-1]["devices"]]
            os.kill(pid, signal.SIGKILL)
            took = self.daemon.eventually(lambda status: status["devices"][0]["free"] == before)
        self.assertLess(took, 1.0)
        self.assertEqual(chunks, [64 * MIB])
        status = self.assert_exact()
        self.assertEqual(status["devices"][0]["leased"], 32 * MIB)
        self.assertEqual(status["devices"][0]["cached"], 0)
        self.assertEqual(status["devices"][0]["stranded"], 0)
        self.assertEqual(len(status["sessions"]), 1)
        self.assertEqual(other.grant()[2], True, "a fresh chunk, not the dead one's")

    def test_what_a_dead_process_gave_back_counts(self):
        def leave():
            client = self.daemon.session()
            chunk = client.grant()[1]
            os.kill(self.daemon.process.pid, signal.SIGSTOP)  # Popen.send_signal() does nothing in a forked child
            client.acknowledge(chunk)
            for _ in range(40):  # more than the daemon reads at a time, so that it sees the death before the rest
                client.acknowledge(99)
            client.give_back(chunk)
            return client

        with child(leave) as pid:
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            self.daemon.process.send_signal(signal.SIGCONT)
            self.daemon.eventually(lambda status: status["devices"][0]["cached"] == 32 * MIB and
                                   not status["sessions"])

    def test_a_closed_socket_ends_the_session_and_its_chunks_are_never_lent_again(self):
        """The process may still map them: the driver returns the bytes when it no longer does."""
        def hold_memory(say_goodbye):
            client = self.daemon.session()
            client.acknowledge(client.grant()[1])
            client.memory_info()
            if say_goodbye:
                client.goodbye()
            client.close()
            return client

        for say_goodbye in (False, True):
            with child(lambda: hold_memory(say_goodbye)):
                self.daemon.eventually(lambda status: not status["sessions"] and status["devices"][0]["reserved"] == 0)
                self.assertTrue(self.session().grant()[2], "a fresh chunk")
                self.clients.pop().close()

    def test_a_child_that_keeps_the_socket_does_not_keep_the_session(self):
        def hold_memory_and_fork():
            client = self.daemon.session()
            client.acknowledge(client.grant()[1])
            client.memory_info()
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
            return client

        with child(hold_memory_and_fork) as pid:
            os.kill(pid, signal.SIGKILL)
            self.daemon.eventually(lambda status: not status["sessions"] and status["devices"][0]["reserved"] == 0, within=3)

    def test_many_deaths_in_the_middle_of_requests_leave_nothing_behind(self):
        before = self.daemon.device()["free"]

        def ask_and_go_on_asking():
            client = self.daemon.session()
            for number in range(40):
                client.send(packet(GRANT, struct.pack("<IIQ", 0, 0, 32 * MIB), number))
            return client

        for _ in range(10):
            with child(ask_and_go_on_asking) as pid:
                os.kill(pid, signal.SIGKILL)
        self.daemon.eventually(lambda status: not status["sessions"] and status["devices"][0]["leased"] == 0)
        self.daemon.eventually(lambda status: status["devices"][0]["free"] + status["devices"][0]["cached"] == before)
        self.assert_exact()


class Shutdown(unittest.TestCase):
    def test_sigterm_ends_the_daemon_within_two_seconds_even_with_hanging_clients(self):
        daemon = Daemon()
        clients = [daemon.session() for _ in range(5)]
        for client in clients:
            client.acknowledge(client.grant()[1])
            client.send(packet(GRANT, struct.pack("<IIQ", 0, 0, 32 * MIB), 7))
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(10), 0)
        self.assertLess(time.monotonic() - begin, 2.0)
        self.assertFalse(os.path.exists(daemon.socket))
        for client in clients:
            with self.assertRaises(Closed):
                while True:
                    client.receive()
            client.close()
        daemon.stop()

    def test_a_killed_daemon_leaves_a_stale_socket_that_the_next_one_replaces(self):
        daemon = Daemon()
        epoch = daemon.status()["epoch"]
        daemon.process.kill()
        daemon.process.wait()
        self.assertTrue(os.path.exists(daemon.socket))
        daemon.admin.close()
        again = Daemon(path=daemon.socket, wait=False)
        client = again.connect_when_up()
        self.assertEqual(client.hello(ADMIN), OK)
        self.assertNotEqual(client.status()["epoch"], epoch)
        client.close()
        self.assertEqual(again.stop(), 0)
        daemon.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
