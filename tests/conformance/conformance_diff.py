"""diff.py on hand-made results."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

DIFF = pathlib.Path(__file__).with_name("diff.py")


def case(name, outcome="as_expected", observed="cuMemMap = INVALID_VALUE (1)", source="documented", ns=5):
    return {"name": name, "source": source, "expectation": "as said", "outcome": outcome, "observed": observed, "ns": ns}


def result(*cases, **changed):
    return dict({"format": 1, "driver_version": 13000, "device_name": "a GPU", "cases": list(cases)}, **changed)


class Differ(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramd-diff-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def diff(self, a, b, *flags):
        for name, content in (("a", a), ("b", b)):
            (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return subprocess.run([sys.executable, DIFF, self.folder / "a", self.folder / "b", *flags], capture_output=True,
                              text=True, timeout=20)

    def test_equal_but_for_times_and_addresses(self):
        done = self.diff(result(case("x", observed="12.5 ms; at 0x7f00"), device_name="one"),
                         result(case("x", observed="3 ms; at 0x1", ns=99), device_name="two"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("0 of 1 cases differ", done.stdout)

    def test_another_outcome(self):
        done = self.diff(result(case("x"), case("y")), result(case("x"), case("y", outcome="crashed", observed="signal 11")))
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("outcome differs (1):\n  y (documented)\n    A  as_expected: ", done.stdout)
        self.assertIn("    B  crashed: signal 11\n", done.stdout)
        self.assertNotIn("  x (", done.stdout)

    def test_another_code_or_size(self):
        done = self.diff(result(case("x"), case("y", observed="2097152 bytes")),
                         result(case("x", observed="cuMemMap = SUCCESS (0)"), case("y", observed="65536 bytes")))
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("observed differs (2):", done.stdout)

    def test_cases_of_one_side(self):
        done = self.diff(result(case("x"), case("old")), result(case("x"), case("new")))
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("only in A (1):\n  old", done.stdout)
        self.assertIn("only in B (1):\n  new", done.stdout)

    def test_markdown(self):
        done = self.diff(result(case("x", observed="a|b")), result(case("x", observed="c")), "--markdown")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("| x | documented | a\\|b | c |", done.stdout)

    def test_what_cannot_be_read(self):
        good = result(case("x"))
        for bad in ("", "[]", "{", result(case("x"), format=2), result({"name": "x"}), result(case("x"), case("x"))):
            for pair in ((good, bad), (bad, good)):
                done = self.diff(*pair)
                self.assertEqual(done.returncode, 2, (bad, done))
                self.assertIn("diff.py: error: ", done.stderr)
        (self.folder / "a").unlink()
        done = subprocess.run([sys.executable, DIFF, self.folder / "a", self.folder / "a"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done)


if __name__ == "__main__":
    unittest.main()
