"""A simulated machine of its own for each run of vramd_conformance. Arguments of the test: program, folder of the driver."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, DRIVER = (pathlib.Path(sys.argv.pop(1)) for _ in range(2))


class Simulated(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vramd-conformance-", dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *flags, devices=2, **environment):
        machine = tempfile.mkdtemp(dir=self.folder)
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("VRAMD_", "SIM_", "CUDA_")) and k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        clean.update(environment, SIM_DIR=machine, SIM_NAME="conformance", SIM_PROFILE="tiny-2g", SIM_DEVICES=str(devices),
                     LD_LIBRARY_PATH=str(DRIVER))
        return subprocess.run([str(PROGRAM), *flags], env=clean, capture_output=True, text=True, timeout=110)

    def result(self, done):
        """The cases by name."""
        written = json.loads(done.stdout)
        self.assertEqual(written["format"], 1)
        return {case["name"]: case for case in written["cases"]}
