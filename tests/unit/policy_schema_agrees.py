"""The JSON schema for editors and the parser give the same verdict.

Not compared, because a schema cannot say it: keys given twice, rules that nothing reaches, reserve above limit, and
whole numbers written with an exponent.  Arguments: the policy_verdict program, the folder config.
Exit code 77 (skipped) without the Python package jsonschema.
"""
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)


def one_key(path, value):
    """{"version": 1, a: {b: value}} for the path "a.b"; "a[].b" puts it into a list of one."""
    for name in reversed(path.split(".")):
        listed = name.endswith("[]")
        value = {name.removesuffix("[]"): [value] if listed else value}
    return {"version": 1} | value


def rule(**keys):
    return one_key("sessions[]", {"match": {"any": True}} | keys)


def module(name, **keys):
    return one_key("policies[]", {"module": name} | keys)


SIZES = [0, 1, 2**60, 2**60 + 1, -1, "12GiB", "1.5MiB", "7B", "1024", "1.5", "12GB", "12 GiB", "", "5%", "100%", "100.0%",
         "101%", "-1", None, True, [], {}]
DURATIONS = ["5ms", "1.5s", "10m", "2h", "3us", "5", 5, "5sec", "-1s", "", None]
RATIOS = [0, 1, 0.5, 1.1, -0.1, "0.5", 95, None]
WORDS = ["auto", "off", "on", "pool", "full", "never", "local", "any", "uid", "domain", "always", "x", "", 1, True, None]


def cases():
    yield from ({}, {"version": 2}, {"version": "1"}, {"version": 1, "x": 1}, {"version": 1, "$schema": "s"}, [], 1)
    for key in ("pool.retain", "pool.headroom", "host_memory.limit", "moves.max_bandwidth", "staging.slot_size"):
        for value in SIZES + ["auto"]:
            yield one_key(key, value)
    for value in SIZES:
        yield rule(limit=value)
        yield module("cold-chunk", min_block=value)
    for value in DURATIONS:
        yield one_key("moves.max_pause", value)
        yield one_key("oom.wait", value)
        yield module("idle-session", after=value)
    for value in RATIOS:
        yield one_key("pool.garbage_collection_threshold", value)
        yield module("guard", max_slowdown=value)
    for key in ("mode", "pool.domain", "pool.ipc", "pool.scrub", "moves.assume_quiet", "host_memory.numa",
                "staging.enabled", "oom.report", "oom.language", "oom.snapshot", "metrics.sessions", "pool", "sessions"):
        for value in WORDS:
            yield one_key(key, value)
    for value in ("127.0.0.1:9845", "off", "[::1]:0", "localhost:80", "9845", ":9845", "::1:80", "a b:1", "", 1):
        yield one_key("metrics.listen", value)
    for value in (0, 1, 2, 64, 65, 1024, 1025, "auto", "2", 2.5, -1):
        yield one_key("staging.slots", value)
        yield one_key("metrics.sessions_max", value)
    for value in ([0], [0, 15], [16], [], [0, 0], [-1], ["GPU-1"], 0, [0.5]):
        yield rule(gpus=value)
    for value in ({}, {"any": True}, {"any": False}, {"user": "a"}, {"user": ""}, {"usr": "a"}, {"slurm_job": "*"}, [], 1):
        yield one_key("sessions[]", {"match": value})
    for value in ("rule", "session", "user", "job", "cgroup", "container", "x", 1):
        yield rule(per=value)
    for name in ("idle-session", "optimizer-state", "activation", "cold-chunk", "guard", "advisor", "x", 1):
        yield module(name)
        yield module(name, enabled=False)
        yield module(name, after="5s")
        yield module(name, nonsense=1)
    yield one_key("policies[]", {})
    yield one_key("oom.steps", ["limbo", "wait"])
    yield one_key("oom.steps", ["limbo", "x"])
    yield one_key("sessions[]", {"limit": 1})


def main():
    verdict, config = sys.argv[1], pathlib.Path(sys.argv[2])
    validator = jsonschema.Draft7Validator(json.loads((config / "policy.schema.json").read_text()))
    examples = [json.loads(re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.M))
                for file in sorted(config.glob("policies/*.json"))]
    assert examples, "no example policies found"
    policies = examples + list(cases())
    texts = "".join(json.dumps(policy) + "\0" for policy in policies)
    answers = subprocess.run([verdict], input=texts, capture_output=True, text=True, check=True).stdout.split()
    assert len(answers) == len(policies)
    differ = [(policy, answer) for policy, answer in zip(policies, answers)
              if validator.is_valid(policy) != (answer == "ok")]
    for policy, answer in differ:
        print(f"parser says {answer}, schema says the opposite: {json.dumps(policy)}")
    assert answers[: len(examples)] == ["ok"] * len(examples), "an example policy is not valid"
    print(f"{len(policies)} policies, {answers.count('ok')} of them good, {len(differ)} differences")
    return 1 if differ else 0


sys.exit(main())
