"""tools/setup says what is wrong: beside programs that stand in for dpkg-query and cmake, so nothing is installed or built.

Argument: the folder tools.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1))


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramd-setup-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.clone = self.folder / "clone"
        (self.clone / "tools").mkdir(parents=True)
        for name in ("setup", "demo"):
            shutil.copy(TOOLS / name, self.clone / "tools" / name)
        self.program("dpkg-query", "printf 'install ok installed'")
        (self.folder / "cuda/include").mkdir(parents=True)
        (self.folder / "cuda/include/cuda.h").touch()

    def program(self, name, line):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def tool(self, name, *words):
        environment = dict(os.environ, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}", CUDA_HOME=str(self.folder / "cuda"))
        return subprocess.run([self.clone / "tools" / name, *words], capture_output=True, text=True, timeout=30, env=environment)

    def test_unknown_arguments_are_wrong_usage(self):
        for name in ("setup", "demo"):
            done = self.tool(name, "--bogus")
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(f"{name}: error: unknown argument '--bogus'", done.stderr)

    def test_a_failed_cmake_is_shown(self):
        self.program("cmake", "echo CMake Error: no generator; exit 1")
        done = self.tool("setup")
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stderr, "CMake Error: no generator\nsetup: error: cmake failed (above)\n")
        # A clone that is not writable is enough up to here.
        self.assertEqual([path.name for path in self.clone.iterdir()], ["tools"])


if __name__ == "__main__":
    unittest.main()
