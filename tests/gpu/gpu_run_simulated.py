"""tests/gpu/bundle and run --sim in a folder of their own: every part gives what it should, and a runtime that calls other
driver entries than the map says is noticed."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["VRAMD_SOURCE"])
BUILD = pathlib.Path(os.environ["VRAMD_BUILD"])
RUNTIME = SOURCE / "tools/simgpu/runtime"
NVCC = os.environ.get("VRAMD_HAS_NVCC") == "1"
CHUNK_SIZES = ("2MiB", "20MiB", "32MiB", "128MiB")


def rows(path):
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return {fields[0]: fields[1] for fields in lines if fields}


class GpuRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="vramd-gpu-run-"))
        cls.bundle = cls.folder / "bundle"
        command = [SOURCE / "tests/gpu/bundle", "--with-sim", "--no-build", "--no-proof", "--build", BUILD, cls.bundle]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if made.returncode != 0:
            raise RuntimeError(f"bundle: exit {made.returncode}\n{made.stdout}{made.stderr}")
        cls.made = made.stdout
        cls.results = cls.folder / "results"
        cls.machines = set(pathlib.Path("/dev/shm").glob("simgpu-gpu-run-*"))
        cls.done = cls.run_bundle("--sim", "--out", cls.results)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def run_bundle(cls, *arguments, **environment):
        return subprocess.run([cls.bundle / "run", *map(str, arguments)], env=dict(os.environ, **environment), cwd=cls.folder,
                              capture_output=True, text=True, timeout=200)

    def read(self, name, folder=None):
        return json.loads(((folder or self.results) / name).read_text())

    def test_every_part_goes_well(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        verdicts = {part: found["verdict"] for part, found in self.read("run.json").items()}
        expected = dict.fromkeys(("host", "conformance", "calls", "calibration", "programs"), "ok") | {"pytorch": "skipped"}
        if not NVCC:
            expected |= {"calls": "skipped", "programs": "skipped"}
        self.assertEqual(verdicts, expected)

    def test_the_machine_is_removed(self):
        self.assertLessEqual(set(pathlib.Path("/dev/shm").glob("simgpu-gpu-run-*")), self.machines)

    def test_host(self):
        host = self.read("host.json")
        self.assertEqual(host["probe"], {"cuInit": 0, "driver": 13000, "devices": 2})
        for key in ("date", "system", "kernel", "libc", "cpu_flags", "memory"):
            self.assertTrue(host[key], key)
        self.assertGreater(host["numa_nodes"], 0)

    def test_calibration(self):
        found = self.read("calibration.json")
        self.assertEqual(found["driver"], 13000)
        measured = found["measurements"]
        wanted = ["context/create", "context/bytes", "host_alloc", "host_register", "stream_synchronize/idle", "event_record"]
        for when in ("no_context", "context"):
            wanted += [f"{call}/{backing}/{size}/{when}" for call in ("create", "map", "access", "unmap", "release")
                       for backing in ("device", "host_numa") for size in CHUNK_SIZES]
        wanted += [f"access_of_many/{what}/{how}" for what in ("64x2MiB", "8x32MiB") for how in ("one_call", "call_each")]
        wanted += [f"{call}/{backing}/{size}" for call in ("export", "import") for backing in ("device", "host_numa")
                   for size in ("2MiB", "128MiB")]
        wanted += [f"{call}/{size}B" for call in ("alloc", "free") for size in (256, 1 << 16, 2 << 20, 64 << 20, 1 << 30)]
        wanted += [f"copy/{direction}/{kind}/{size}MiB" for direction in ("h2d", "d2h", "both")
                   for kind in ("pinned", "pageable", "host_numa") for size in (1, 4, 16)]
        wanted += [f"copy/d2d/{size}MiB" for size in (1, 4, 16)]
        if NVCC:
            wanted += ["launch/empty", "launch/empty_and_wait"]
            wanted += [f"kernel/{way}/{order}/{where}" for way in ("read", "write") for order in ("sequential", "random")
                       for where in ("device", "host_numa", "pinned")]
        self.assertEqual([name for name in wanted if name not in measured], [])
        self.assertEqual([name for name, entry in measured.items() if "error" in entry], [] if NVCC else ["kernel"])
        for name, entry in measured.items():
            for key in ("value", "median", "p90", "least", "count"):
                self.assertGreater(entry.get(key, 1), 0, f"{name}: {entry}")

    def test_a_context_costs_what_the_simulated_driver_charges(self):
        self.assertEqual(self.read("calibration.json")["measurements"]["context/bytes"]["value"], 300 << 20)

    def test_nvidias_runtime_is_in_the_bundle_for_a_gpu(self):
        if not NVCC:
            self.skipTest("no nvcc")
        self.assertIn("runtime_calls", self.made)
        command = ["readelf", "-d", self.bundle / "bin/runtime_calls"]
        needed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertNotIn("libcudart", needed)

    def test_the_seen_map_is_the_written_one(self):
        if not NVCC:
            self.skipTest("no nvcc")
        said = (self.results / "map_diff.txt").read_text()
        self.assertEqual(said, f"{len(rows(RUNTIME / 'runtime_map.txt'))} rows confirmed, 0 differ, 0 not seen\n")
        lookups = self.read("calls.json")["lookups"]
        listed = [line.split("#")[0].split() for line in (RUNTIME / "lookups.txt").read_text().splitlines()]
        listed = [[fields[0].strip('"'), int(fields[1]), int(fields[2])] for fields in listed if fields]
        self.assertEqual([question[:3] for question in lookups], listed)

    def compare(self, calls, *arguments):
        command = [sys.executable, "-B", SOURCE / "tests/gpu/map_diff.py", calls, RUNTIME / "runtime_map.txt", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=20)

    def test_another_runtime_is_noticed(self):
        if not NVCC:
            self.skipTest("no nvcc")
        results = self.folder / "permuted"
        done = self.run_bundle("--sim", "--only", "calls", "--out", results, GPU_RUN_MAP="permuted")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        differs = {line.split()[1].rstrip(":") for line in (results / "map_diff.txt").read_text().splitlines()
                   if line.startswith("differs")}
        permuted = rows(RUNTIME / "runtime_map_permuted.txt")
        self.assertEqual(differs, set(permuted))
        over = self.compare(results / "calls.json", "--over", RUNTIME / "runtime_map_permuted.txt")
        self.assertEqual(over.returncode, 0, over.stdout)

        corrected = self.folder / "corrected.txt"
        self.compare(results / "calls.json", "--write", corrected)
        self.assertEqual(rows(corrected), rows(RUNTIME / "runtime_map.txt") | permuted)
        self.assertNotIn(" assumed", "".join(line for line in corrected.read_text().splitlines() if not line.startswith("#")))
        self.assertEqual(self.compare(results / "calls.json", "--over", corrected).returncode, 0)

    def test_without_a_gpu_it_says_so(self):
        done = self.run_bundle("--out", self.folder / "none", LD_LIBRARY_PATH="")
        if done.returncode == 3:
            self.assertRegex(done.stdout, r"^run: skipped: no usable GPU here \(.*\)\n$")
        else:
            self.skipTest("there is a GPU here")

    def test_bad_flags_say_what_to_write(self):
        for arguments, words in ((["--only", "x"], "there are: host calls"), (["--limit", "0"], "from 1 to 99999"),
                                 (["--frob"], "unknown argument '--frob'"),
                                 (["--bundle", "/"], "make one with tests/gpu/bundle DIR"),
                                 (["--out"], "--out needs a value")):
            done = self.run_bundle(*arguments)
            self.assertEqual(done.returncode, 64, arguments)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
