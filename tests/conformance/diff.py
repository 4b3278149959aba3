#!/usr/bin/env python3
"""Compares two results of vramd_conformance: which cases came out differently.

    diff.py A.json B.json [--markdown]

Times and addresses in what was observed do not count. Exit status: 0 the same, 1 something differs, 2 a file cannot be
read, is no result, or is one of another format.
"""
import argparse
import json
import re
import sys

FORMAT = 1
FIELDS = ("name", "source", "outcome", "observed")
VARYING = [(re.compile(r"\b\d+(\.\d+)? (ns|us|ms)\b"), r"# \2"), (re.compile(r"\b0x[0-9a-f]+\b"), "0x#")]


class Unreadable(Exception):
    pass


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError) as problem:
        raise Unreadable(f"{path}: {problem}") from problem
    if not isinstance(result, dict) or not isinstance(result.get("cases"), list):
        raise Unreadable(f"{path}: not written by vramd_conformance")
    if result.get("format") != FORMAT:
        raise Unreadable(f"{path}: format {result.get('format')}, this program reads {FORMAT}")
    cases = {}
    for case in result["cases"]:
        if not isinstance(case, dict) or not all(isinstance(case.get(field), str) for field in FIELDS):
            raise Unreadable(f"{path}: a case lacks one of {', '.join(FIELDS)}")
        if case["name"] in cases:
            raise Unreadable(f"{path}: the case {case['name']} is there twice")
        cases[case["name"]] = case
    return result, cases


def observed_class(case):
    text = case["observed"]
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return text


def compare(one, two):
    """Groups of (name, source, text of A, text of B)."""
    groups = {"outcome differs": [], "observed differs": [], "only in A": [], "only in B": []}
    for name in list(one) + [name for name in two if name not in one]:
        a, b = one.get(name), two.get(name)
        if a is None or b is None:
            present = a or b
            group = "only in A" if b is None else "only in B"
            texts = [f"{case['outcome']}: {case['observed']}" if case else "" for case in (a, b)]
            groups[group].append((name, present["source"], *texts))
        elif a["outcome"] != b["outcome"]:
            groups["outcome differs"].append((name, b["source"], *(f"{c['outcome']}: {c['observed']}" for c in (a, b))))
        elif observed_class(a) != observed_class(b):
            groups["observed differs"].append((name, b["source"], a["observed"], b["observed"]))
    return groups


def title(result):
    return f"{result.get('device_name', '?')}, driver {result.get('driver_version', '?')}"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def print_markdown(groups):
    for group, rows in groups.items():
        if not rows:
            continue
        print(f"\n### {group} ({len(rows)})\n\n| case | source | A | B |\n|---|---|---|---|")
        for row in rows:
            print("| " + " | ".join(cell(text) for text in row) + " |")


def print_plain(groups):
    for group, rows in groups.items():
        if rows:
            print(f"{group} ({len(rows)}):")
        for name, source, a, b in rows:
            print(f"  {name} ({source})")
            for letter, text in (("A", a), ("B", b)):
                if text:
                    print(f"    {letter}  {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("a", metavar="A.json")
    parser.add_argument("b", metavar="B.json")
    parser.add_argument("--markdown", action="store_true", help="tables instead of lines")
    options = parser.parse_args()
    try:
        (result_a, a), (result_b, b) = read(options.a), read(options.b)
    except Unreadable as problem:
        print(f"diff.py: error: {problem}", file=sys.stderr)
        return 2
    groups = compare(a, b)
    for letter, result in (("A", result_a), ("B", result_b)):
        print(f"{'- ' if options.markdown else ''}{letter}: {title(result)}")
    (print_markdown if options.markdown else print_plain)(groups)
    count = sum(map(len, groups.values()))
    print(f"\n{count} of {len(a.keys() | b.keys())} cases differ")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
