"""Runs a program with libvramd.so preloaded and a simulated machine of its own, which is removed afterwards.

  hook_run.py [--preload LIBRARY] [--path FOLDER] [--env NAME=VALUE] [--same-without] [--expect CODE] -- COMMAND...

--same-without: run it with and without the library; output and exit status must be the same.
"""
import argparse
import os
import subprocess
import sys
import tempfile


def environment(options, machine):
    result = {name: value for name, value in os.environ.items()
              if not name.startswith(("VRAMD_", "SIM_")) and name not in ("LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH")}
    result.update(SIM_DIR=machine, SIM_NAME=f"hook-{os.getpid()}", XDG_RUNTIME_DIR=machine)
    if options.path:
        result["LD_LIBRARY_PATH"] = options.path
    result.update(pair.split("=", 1) for pair in options.env)
    return result


def run(options, machine, preload):
    settings = environment(options, machine)
    if preload:
        settings["LD_PRELOAD"] = preload
    done = subprocess.run(options.command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preload")
    parser.add_argument("--path")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--same-without", action="store_true")
    parser.add_argument("--expect", type=int, default=0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="vramd-hook-") as machine:
        code, output = run(options, machine, options.preload)
        print(output, end="")
        if options.same_without:
            plain = run(options, machine, None)
            if plain != (code, output):
                print(f"without the library: exit status {plain[0]}, output:\n{plain[1]}", end="")
                return 1
            if "cannot be preloaded" in output:
                print("the library was not loaded")
                return 1
            return 0 if code == options.expect else 1
        if code == 77:
            return 77
        if code != options.expect:
            print(f"exit status {code}, expected {options.expect}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
