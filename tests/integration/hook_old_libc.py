"""libvramd.so under the C libraries of other Debian releases: it loads, and what a program allocates comes from it.

  hook_old_libc.py LIBRARY PROGRAM DRIVER_FOLDER CACHE_FOLDER
Those that cannot be had are left out."""
import pathlib
import subprocess
import sys

OLD_LIBC = pathlib.Path(__file__).resolve().parents[1] / "support" / "old_libc"
RELEASES = {None: "this machine's", "bullseye": "Debian 11", "trixie": "Debian 13"}


def fetch(suite, cache):
    """Loader, folder of its libraries, package; None if they cannot be had."""
    if suite is None:
        return "/lib64/ld-linux-x86-64.so.2", "", "installed"
    paths = cache / suite / "paths"
    if not paths.exists():
        done = subprocess.run([OLD_LIBC, suite, cache / suite], capture_output=True, text=True, check=False)
        if done.returncode == 4:
            return None
        if done.returncode != 0:
            sys.exit(f"{OLD_LIBC.name}: {done.stderr}")
        paths.write_text(done.stdout)
    return paths.read_text().split()


def run(loader, libraries, program, driver, preload, mode):
    command = [loader, "--library-path", f"{libraries}:{driver}", *(["--preload", preload] if preload else []), program]
    environment = {"PATH": "/usr/bin", "VRAMD_SOCKET": "/nonexistent/vramd.sock", "VRAMD_MODE": mode}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return "it hangs", ""
    return done.returncode, done.stdout + done.stderr


def main():
    library, program, driver, cache = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:])
    failed = 0
    for suite, name in RELEASES.items():
        found = fetch(suite, pathlib.Path(cache))
        if found is None:
            print(f"{name}: left out, its C library cannot be had here")
            continue
        loader, libraries, package = found
        for preload, mode, expected in ((None, "pool", "not hooked: 0 chunks, 1 native\n"),
                                        (library, "pool", "hooked: 1 chunks, 0 native\n"),
                                        (library, "off", "hooked: 0 chunks, 1 native\n")):
            result = run(loader, libraries, program, driver, preload, mode)
            if result != (0, expected):
                print(f"{name} ({package}), preloaded {preload}, mode {mode}: exit status and output {result}, expected {expected!r}")
                failed += 1
        print(f"{name} ({package}): tried")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
