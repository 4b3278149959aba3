"""vramd-bench: its form, its exit codes, and that it can say no."""
import glob
import json
import os
import pathlib
import subprocess
import unittest

BENCH = pathlib.Path(os.environ["VRAMD_BUILD"]) / "bin" / "vramd-bench"
KEYS = {"case", "value", "unit", "p50", "p99", "peer", "ratio", "target", "control", "pass"}


def bench(*arguments):
    return subprocess.run([str(BENCH), *arguments], capture_output=True, text=True, timeout=120)


class Form(unittest.TestCase):
    def test_json_has_one_form(self):
        done = bench("sim", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        (result,) = json.loads(done.stdout)
        self.assertEqual((result["bench"], result["profile"]), ("sim", "bench-2g"))
        self.assertGreaterEqual(len(result["rows"]), 6)
        for row in result["rows"]:
            self.assertEqual(set(row), KEYS)
            self.assertGreater(row["value"], 0)
            self.assertLessEqual(row["p50"], row["p99"])
            if row["peer"]:
                self.assertAlmostEqual(row["ratio"], row["value"] / sum(row["peer"].values()))
        self.assertEqual(glob.glob("/dev/shm/vramd-bench-*"), [])

    def test_every_bench_has_a_control_that_misses_its_target(self):
        for name in ("sim", "startup", "gate", "grant", "giveback"):
            (result,) = json.loads(bench(name, "--json").stdout)
            controls = [row for row in result["rows"] if row["control"]]
            self.assertTrue(controls, name)
            for row in controls:
                self.assertGreater(row["value"], row["target"])
                self.assertTrue(row["pass"])

    def test_a_missed_target_is_told(self):
        slow = os.environ["VRAMD_TEST_SLOW_LIBRARY"]
        done = bench("startup", "--check", "--shim", slow)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("MISSED", done.stdout)
        self.assertEqual(bench("startup", "--shim", slow).returncode, 0)  # only --check makes it the exit code

    def test_wrong_usage(self):
        for arguments in (("sprint",), ("--no-such-flag",)):
            done = bench(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.startswith("vramd-bench: "), done.stderr)
        self.assertIn("write startup or sim or gate or grant or giveback", bench("sprint").stderr)
        done = bench("startup", "--shim", "/nonexistent/libvramd.so")
        self.assertEqual(done.returncode, 1)
        self.assertIn("build it or name --shim", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
