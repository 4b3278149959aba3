"""The program must be able to say no: a driver that misbehaves, hangs, crashes or lacks things is told from one that does not."""
import unittest

from simulated import Simulated

UNMAP = "vmm.unmap_leaves_reservation"


class Control(Simulated):
    def test_a_wrong_result_is_reported(self):
        self.assertEqual(self.run_program("--only", "vmm.").returncode, 0, "the control of the control")
        done = self.run_program("--only", "vmm.", SIM_FAIL="cuMemUnmap:1=1")
        self.assertEqual(done.returncode, 1, done.stderr)
        cases = self.result(done)
        self.assertEqual(cases[UNMAP]["outcome"], "differs")
        self.assertIn("cuMemUnmap = INVALID_VALUE (1); expected SUCCESS", cases[UNMAP]["observed"])
        self.assertIn(f"differs: {UNMAP}", done.stderr)
        self.assertEqual(cases["vmm.create_size_zero"]["outcome"], "as_expected")

    def test_a_failed_preparation_is_reported_with_the_call(self):
        done = self.run_program("--case", "memory.double_free", SIM_FAIL="cuMemAlloc:1=2")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("preparation failed: cuMemAlloc(&address, size) = OUT_OF_MEMORY (2)",
                      self.result(done)["memory.double_free"]["observed"])

    def test_an_assumption_that_does_not_hold_is_no_failure(self):
        name = "vmm.map_without_context"
        done = self.run_program("--case", name, SIM_FAIL="cuMemMap:1=201")
        self.assertEqual((done.returncode, self.result(done)[name]["outcome"]), (0, "differs"), done.stderr)

    def test_a_hang_ends_at_the_limit(self):
        name = "vmm.create_without_context"
        done = self.run_program("--case", name, "--limit", "1", SIM_LATENCY_US="create:30000000")
        self.assertEqual((done.returncode, self.result(done)[name]["outcome"]), (1, "timed_out"), done.stderr)

    def test_a_crash_harms_one_case(self):
        done = self.run_program("--only", "memory.d", SIM_STRICT="1")
        cases = self.result(done)
        self.assertEqual((done.returncode, cases["memory.double_free"]["outcome"]), (1, "crashed"), done.stderr)
        self.assertIn("signal 6", cases["memory.double_free"]["observed"])

    def test_what_is_missing_is_not_available(self):
        done = self.run_program("--case", "copies.peer", devices=1)
        self.assertEqual((done.returncode, self.result(done)["copies.peer"]["outcome"]), (0, "not_available"), done.stderr)
        done = self.run_program("--case", "host_vmm.host_touches", SIM_HOST_NUMA="0")
        self.assertEqual(self.result(done)["host_vmm.host_touches"]["outcome"], "not_available", done.stderr)

    def test_the_second_device(self):
        done = self.run_program("--case", "copies.peer", "--device", "1")
        self.assertEqual((done.returncode, self.result(done)["copies.peer"]["outcome"]), (0, "as_expected"), done.stderr)

    def test_usage(self):
        for flags, text in ((["--bogus"], "unknown argument '--bogus'"), (["--case"], "--case needs a value"),
                            (["--limit", "soon"], "--limit"), (["--case", "no.such"], "no.such: no such case"),
                            (["--only", "x", "--case", "y"], "exclude"), (["--device", "7"], "cannot be asked"),
                            (["--json", "/nonexistent/x"], "/nonexistent/x: cannot be written")):
            done = self.run_program(*flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (flags, done))
            self.assertIn("vramd_conformance: error: ", done.stderr)
            self.assertIn(text, done.stderr)
        done = self.run_program("-h")
        self.assertEqual((done.returncode, done.stdout.startswith("usage: vramd_conformance")), (0, True), done)
        done = self.run_program("--list", "--only", "ipc.")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(all(line.startswith("ipc.") for line in done.stdout.splitlines()) and done.stdout, done)


if __name__ == "__main__":
    unittest.main()
