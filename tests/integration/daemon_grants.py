"""Grants, give-backs, limits and accounts, as one session after another sees them."""
import fcntl
import os
import signal
import unittest

from daemon_wire import *


class Grants(DaemonTest):
    config = {"version": 1, "mode": "pool", "pool": {"retain": "64MiB", "headroom": "0B"}}

    def test_hello_matches_devices_by_uuid(self):
        stranger = bytes(range(16))
        client = self.session(uuids=[stranger] + self.daemon.uuids)
        self.assertEqual(client.devices[0][:2], (0xFFFFFFFF, SOURCE_NONE))
        self.assertEqual(client.devices[1], (0, SOURCE_DAEMON, self.daemon.device()["total"]))
        self.assertEqual(client.mode, POOL)

    def test_first_grant_is_fresh_and_carries_a_descriptor(self):
        client = self.session()
        before = self.daemon.device()["free"]
        status, chunk, fresh, fd = client.grant()
        self.assertEqual((status, fresh), (OK, True))
        os.fstat(fd)
        client.acknowledge(chunk)
        device = self.assert_exact()["devices"][0]
        self.assertEqual(device["leased"], 32 * MIB)
        self.assertEqual(before - device["free"], 32 * MIB)
        self.assertEqual(self.daemon.status()["grants"], {"hit": 0, "miss": 1, "oom": 0})

    def test_a_given_back_chunk_goes_to_the_next_session_of_the_user(self):
        first, second = self.session(), self.session()
        _, chunk, _, _ = first.grant()
        first.acknowledge(chunk)
        first.give_back(chunk)
        self.daemon.eventually(lambda status: status["devices"][0]["cached"] == 32 * MIB)
        status, again, fresh, fd = second.grant()
        self.assertEqual((status, again, fresh), (OK, chunk, False))
        os.fstat(fd)
        self.assert_exact()
        self.assertEqual(self.daemon.metric("vramd_chunks_recycled_total"), 1)
        self.assertEqual(self.daemon.metric('vramd_allocation_requests_total{gpu="0"'), 2)

    def test_a_chunk_that_was_never_acknowledged_is_not_lent_again(self):
        """A session that could not import it gives it back like that."""
        client = self.session()
        chunk = client.grant()[1]
        client.close_fd(chunk)
        client.give_back_unused(chunk)
        self.daemon.eventually(lambda status: status["devices"][0]["reserved"] == 0)
        self.assertTrue(client.grant()[2])

    def test_idle_chunks_above_retain_go_back_to_the_driver(self):
        client = self.session()
        before = self.daemon.device()["free"]
        chunks = [client.grant()[1] for _ in range(4)]
        for chunk in chunks:
            client.acknowledge(chunk)
        client.give_back(*chunks)
        self.daemon.eventually(lambda status: status["devices"][0]["free"] == before - 64 * MIB)
        self.assertEqual(self.daemon.device()["cached"], 64 * MIB)

    def test_memory_that_is_idle_in_another_size_is_converted(self):
        client = self.session(limit=0)
        big = client.grant(32 * MIB)[1]
        client.acknowledge(big)
        client.give_back(big)
        self.assertEqual(self.daemon.device()["cached"], 32 * MIB)
        held = []
        while True:  # the card, up to the last megabyte
            status, chunk, _, _ = client.grant(32 * MIB)
            if status != OK:
                break
            client.close_fd(chunk)
            client.acknowledge(chunk)
            held.append(chunk)
        self.assertEqual(status, OUT_OF_MEMORY)
        self.assertEqual(held[0], big)
        while (small := client.grant(2 * MIB))[0] == OK:
            client.acknowledge(small[1])
            held.append(small[1])
        self.assertEqual(small[0], OUT_OF_MEMORY)
        self.assertLess(self.daemon.device()["free"], 2 * MIB)
        client.give_back(*held[:2])
        self.daemon.eventually(lambda status: status["devices"][0]["cached"] == 64 * MIB)
        status, chunk, fresh, _ = client.grant(2 * MIB)
        self.assertEqual((status, fresh), (OK, True))
        self.assertEqual(self.daemon.metric("vramd_pool_conversions_total"), 1)
        self.assert_exact()

    def test_sizes_that_are_no_class_are_malformed(self):
        client = self.session()
        for size in (0, 1, 3 * MIB, 20 * MIB, NO_LIMIT):
            self.assertEqual(client.grant(size)[0], MALFORMED)
        self.assertEqual(client.grant(2 * MIB)[0], OK)

    def test_no_more_than_64_unacknowledged(self):
        client = self.session()
        chunks = [client.grant(2 * MIB)[1] for _ in range(64)]
        self.assertEqual(client.grant(2 * MIB)[0], TOO_MANY)
        client.acknowledge(chunks[0])
        self.assertEqual(client.grant(2 * MIB)[0], OK)

    def test_a_foreign_chunk_is_not_taken(self):
        first, second = self.session(), self.session()
        _, chunk, _, _ = first.grant()
        second.give_back(chunk, 12345, NO_LIMIT)
        second.acknowledge(chunk)
        self.assertEqual(second.memory_info()[0], OK)
        self.assertEqual(self.assert_exact()["devices"][0]["leased"], 32 * MIB)

    def test_memory_info_and_charges(self):
        client = self.session(limit=100 * MIB)
        status, total, free, limit, used = client.memory_info()
        self.assertEqual((status, total, free, limit, used), (OK, 100 * MIB, 100 * MIB, 100 * MIB, 0))
        client.grant()
        self.assertEqual(client.charge(60 * MIB), OK)
        self.assertEqual(client.memory_info()[2:], (8 * MIB, 100 * MIB, 92 * MIB))
        self.assertEqual(client.charge(9 * MIB), OVER_LIMIT)
        self.assertEqual(client.charge(-61 * MIB), MALFORMED)
        self.assertEqual(client.charge(-60 * MIB), OK)
        self.assertEqual(client.memory_info()[4], 32 * MIB)
        self.assertEqual(client.charge(1, device=7), NO_DEVICE)
        self.assertEqual(client.memory_info(device=7)[0], NO_DEVICE)
        self.assertEqual(client.grant(device=7)[0], NO_DEVICE)

    def test_a_session_without_limit_sees_the_device(self):
        _, total, free, limit, used = self.session().memory_info()
        device = self.daemon.device()
        self.assertEqual((total, limit, used), (device["total"], NO_LIMIT, 0))
        self.assertEqual(free, device["free"])

    def test_another_driver_version_means_the_local_source(self):
        client = self.session(driver_version=self.daemon.driver_version - 1)
        self.assertEqual(client.devices[0][1], SOURCE_LOCAL)
        self.assertEqual(client.grant()[0], REFUSED)
        self.assertEqual(client.charge(2 * MIB), OK)

    def test_a_wish_only_lowers_the_mode(self):
        self.assertEqual(self.session(mode=FULL).mode, POOL)
        observer = self.session(mode=OBSERVE)
        self.assertEqual((observer.mode, observer.devices[0][1]), (OBSERVE, SOURCE_NATIVE))
        self.assertEqual(self.session(mode=77).mode, POOL)

    def test_status_cannot_be_changed_by_its_reader(self):
        self.daemon.status()
        fd = self.daemon.admin.fds[-1]
        with self.assertRaises(OSError):
            os.ftruncate(fd, 0)
        seals = fcntl.fcntl(fd, 1034)  # F_GET_SEALS
        self.assertEqual(seals & 0xF, 0xF)


class Limits(DaemonTest):
    config = {"version": 1, "sessions": [{"match": {"job": "small*"}, "limit": "64MiB"},
                                         {"match": {"any": True}, "limit": "50%"}]}

    def test_the_first_rule_that_matches_decides(self):
        half = self.daemon.device()["total"] // 2
        small, other = self.session(job=b"small-1"), self.session(job=b"other")
        self.assertEqual(small.memory_info()[3], 64 * MIB)
        self.assertEqual(other.memory_info()[3], half)
        self.assertEqual(self.session(job=b"other", limit=MIB).memory_info()[3], MIB)

    def test_sighup_changes_limits_for_later_grants(self):
        client = self.session(job=b"small-1")
        self.assertEqual([client.grant()[0] for _ in range(3)], [OK, OK, OVER_LIMIT])
        self.daemon.write_config({"version": 1, "sessions": [{"match": {"any": True}, "limit": "96MiB"}]})
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.eventually(lambda status: status["sessions"][0]["devices"][0]["limit"] == 96 * MIB)
        self.assertEqual([client.grant()[0] for _ in range(2)], [OK, OVER_LIMIT])
        # Lowered below what is held, nothing is taken.
        self.daemon.write_config({"version": 1, "sessions": [{"match": {"any": True}, "limit": "32MiB"}]})
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.eventually(lambda status: status["sessions"][0]["devices"][0]["limit"] == 32 * MIB)
        self.assertEqual(self.daemon.device()["leased"], 96 * MIB)
        self.assertEqual(client.memory_info()[2], 0)
        self.assertEqual(client.grant(2 * MIB)[0], OVER_LIMIT)

    def test_a_bad_file_leaves_the_old_policy_in_force(self):
        client = self.session(job=b"small-1")
        self.daemon.write_config('{"version": 1, "moode": "pool"}')
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.eventually(lambda status: not status["config"]["last_reload_successful"])
        self.assertEqual(client.memory_info()[3], 64 * MIB)
        self.assertEqual(self.daemon.metric("vramd_config_last_reload_successful"), 0)
        self.assertEqual(self.daemon.status()["config"]["reloads"], 0)
        self.assertIn("moode", self.daemon.log())
        self.daemon.write_config({"version": 1})
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.eventually(lambda status: status["config"]["reloads"] == 1)
        self.assertTrue(self.daemon.status()["config"]["last_reload_successful"])
        self.assertEqual(client.memory_info()[3], NO_LIMIT)

    def test_a_shared_limit_counts_all_its_sessions(self):
        self.daemon.write_config({"version": 1, "sessions": [
            {"match": {"any": True}, "limit": "64MiB", "per": "user"}]})
        self.daemon.process.send_signal(signal.SIGHUP)
        first, second = self.session(), self.session()
        self.daemon.eventually(lambda status: status["sessions"][1]["devices"][0]["limit"] == 64 * MIB)
        self.assertEqual([first.grant()[0], second.grant()[0]], [OK, OK])
        self.assertEqual(first.grant(2 * MIB)[0], OVER_LIMIT)
        self.assertEqual(second.charge(1), OVER_LIMIT)


if __name__ == "__main__":
    unittest.main(verbosity=2)
