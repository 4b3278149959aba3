"""All cases on the simulated driver: no documented one differs."""
import json
import unittest

from simulated import Simulated

LEAST = 300  # cases; fewer means that some are no longer in the table


class Suite(Simulated):
    def test_the_simulated_driver_behaves_as_documented(self):
        file = self.folder / "result.json"
        done = self.run_program("--json", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        written = json.loads(file.read_text())
        self.assertEqual((written["format"], written["driver_version"]), (1, 13000))
        self.assertTrue(written["device_name"])
        cases = written["cases"]
        self.assertGreaterEqual(len(cases), LEAST)
        self.assertEqual(len({case["name"] for case in cases}), len(cases), "names are unique")
        # The simulated machine has everything that a case may find missing.
        self.assertEqual([case["name"] for case in cases if case["outcome"] == "not_available"], [])
        self.assertEqual([case["name"] for case in cases if case["outcome"] in ("crashed", "timed_out")], [])


if __name__ == "__main__":
    unittest.main()
