#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs the pyverbs suite of rdma-core and holds its results against a list of
tests that may be skipped or may fail, each with its reason.

judge.py SUITE LIST LAYER [options of the suite]

A line of LIST is "LAYER PATTERN  REASON": LAYER is infiniband, ethernet or
both, PATTERN a shell pattern of test names; "?" in front of the line: it may
also pass (it depends on the machine).  Prints one line for each surprise (a
test that did not pass and is not listed, one that passed and is), then the
counts.
"""
import fnmatch
import os
import sys
import unittest
from importlib.machinery import SourceFileLoader


class Result(unittest.TestResult):
    """Name to outcome; a test counts once, its worst outcome."""

    def __init__(self):
        super().__init__()
        self.outcome = {}

    def note(self, test, what, why=""):
        name = test.id()
        if name.startswith("tests."):
            name = name[len("tests."):]
        if self.outcome.get(name, ("ok",))[0] == "ok":
            self.outcome[name] = (what, why)

    def addSuccess(self, test):
        self.note(test, "ok")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addError(self, test, err):
        self.note(test, "error", repr(err[1]))

    def addFailure(self, test, err):
        self.note(test, "failed", repr(err[1]))

    def addSubTest(self, test, subtest, err):
        if err:
            self.note(test, "failed", repr(err[1]))


def read_list(path, layer):
    entries = []
    with open(path) as f:
        for line in f:
            words = line.split("#")[0].split()
            if not words:
                continue
            may_pass = words[0] == "?"
            if may_pass:
                words.pop(0)
            if words[0] in (layer, "both"):
                entries.append((words[1], may_pass))
    return entries


def main():
    suite_dir, list_path, layer = sys.argv[1:4]
    del sys.argv[1:4]
    sys.path.insert(0, suite_dir)
    from args_parser import parser
    tests = SourceFileLoader("tests", os.path.join(suite_dir, "__init__.py")) \
        .load_module()
    parser.parse_args()
    result = Result()
    # What the suite prints while it runs is of no interest here.
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    unittest.defaultTestLoader.loadTestsFromModule(tests).run(result)
    sys.stdout.flush()
    os.dup2(out, 1)

    entries = read_list(list_path, layer)
    used = set()
    surprises = 0
    counts = {"ok": 0, "skipped": 0, "failed": 0, "error": 0}
    for name, (what, why) in sorted(result.outcome.items()):
        counts[what] += 1
        listed = [e for e in entries if fnmatch.fnmatch(name, e[0])]
        used.update(e[0] for e in listed)
        if what != "ok" and not listed:
            print(f"not listed: {name} {what}: {why}")
            surprises += 1
        if what == "ok" and any(not e[1] for e in listed):
            print(f"listed, but passes: {name}")
            surprises += 1
    for pattern, _ in entries:
        if pattern not in used:
            print(f"listed, but there is no such test: {pattern}")
            surprises += 1
    print(f"{len(result.outcome)} tests: {counts['ok']} passed, "
          f"{counts['skipped']} skipped, "
          f"{counts['failed'] + counts['error']} failed, "
          f"{surprises} surprises")
    return surprises != 0


sys.exit(main())
