#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ONNX backend cases through `sinter test`, prints the count and the failures grouped by reason.

The cases go to the command in batches; where a batch ends without its last line (a crash), each of its cases is run
alone, so that one bad case cannot hide others. Exit status 0 where enough passed and nothing crashed, and, --against
another device, where everything passed that passes there."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

FAMILIES = ["node", "simple", "pytorch-converted", "pytorch-operator"]
LINE = re.compile(r"^\s*(PASS|FAIL|SKIP)\w*\s+(\S+?):?(?:\s+(.*))?$", re.I)
TOTAL = re.compile(r"^\d+ passed, \d+ failed")


def run(sinter, cases, device, seconds):
    """{case: (verdict, reason)} for the cases that were reported, and how the process ended (None: properly)."""
    command = [sinter, "test", *map(str, cases), "--device", device]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return {}, f"no end after {seconds} s"
    lines = done.stdout.splitlines()
    found = {}
    for line in lines:
        match = LINE.match(line)
        if not match:
            continue
        case = owner(match.group(2), cases)
        if case and found.get(case, ("",))[0] != "FAIL":
            found[case] = (match.group(1).upper(), match.group(3) or "no reason given")
    if any(TOTAL.match(line) for line in lines[-5:]):
        return found, None
    if done.returncode < 0:
        return found, f"crashed: signal {-done.returncode}"
    last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
    return found, f"ended with status {done.returncode}: {last}"


def owner(path, cases):
    """The case that a reported path (of the case, its model or a data set) belongs to."""
    parts = pathlib.PurePath(path).parts
    for case in cases:
        if case.name in parts:
            return case
    return None


def run_batch(arguments):
    sinter, cases, device = arguments
    found, end = run(sinter, cases, device, 300 if len(cases) > 1 else 60)
    if end is None or len(cases) == 1:
        for case in cases:
            found.setdefault(case, ("FAIL", end or "not reported by the command"))
        return found
    found = {}
    for case in cases:
        found.update(run_batch((sinter, [case], device)))
    return found


def group(reason):
    """The reason without what differs from case to case: names, numbers, source lines."""
    reason = re.sub(r"\s*\[[\w/.]+:\d+\]", "", reason)
    reason = re.sub(r"(?<!\bop )(?<!operator )'[^']*'", "'…'", reason)
    reason = re.sub(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b", "N", reason)
    return reason[:140]


def run_all(sinter, batches, device, jobs):
    results = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(run_batch, [(sinter, cases, device) for cases in batches]):
            results.update(found)
    return results


def compare(results, other, device, against):
    """Prints what passes on one device and not on the other; gives how many pass on the other alone."""
    here = {case for case, (verdict, _) in results.items() if verdict == "PASS"}
    there = {case for case, (verdict, _) in other.items() if verdict == "PASS"}
    print(f"{len(here)} pass on {device}, {len(there)} on {against}")
    for case in sorted(there - here):
        print(f"only on {against}: {case.parent.name}/{case.name}: {results[case][1]}")
    for case in sorted(here - there):
        print(f"only on {device}: {case.parent.name}/{case.name}")
    return len(there - here)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--against", help="a device: all that passes there must pass here")
    parser.add_argument("--at-least", type=float, default=75, help="per cent that must pass")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print every case that failed")
    args = parser.parse_args()

    found = {f: sorted(p.parent for p in (args.cases / f).glob("*/model.onnx")) for f in FAMILIES}
    total = {family: len(cases) for family, cases in found.items()}
    size = max(1, min(64, sum(total.values()) // (4 * args.jobs)))
    batches = [cases[i:i + size] for cases in found.values() for i in range(0, len(cases), size)]
    if not batches:
        print(f"no cases under {args.cases}")
        return 1
    results = run_all(args.sinter, batches, args.device, args.jobs)

    passed, reasons, crashed = collections.Counter(), collections.defaultdict(list), []
    for case, (verdict, reason) in sorted(results.items()):
        if verdict == "PASS":
            passed[case.parent.name] += 1
            continue
        reasons[group(f"skipped: {reason}" if verdict == "SKIP" else reason)].append(case)
        if reason.startswith(("crashed", "no end")):
            crashed.append(case)
    print(f"failures by reason, --device {args.device}:")
    for reason, cases in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(cases):5}  {reason}   (first: {cases[0].parent.name}/{cases[0].name})")
        if args.list:
            for case in cases:
                print(f"         {case.parent.name}/{case.name}")
    for family in FAMILIES:
        print(f"{family:18} {passed[family]:5} of {total[family]:5}")
    good, count = sum(passed.values()), sum(total.values())
    share = 100 * good / count
    lost = 0
    if args.against:
        lost = compare(results, run_all(args.sinter, batches, args.against, args.jobs), args.device, args.against)
    print(f"summary: {args.device}: {good} of {count} cases pass ({share:.1f} %, wanted {args.at_least:g} %)" +
          (f", {lost} of those that pass on {args.against} do not" if args.against else ""))
    if crashed:
        print(f"{len(crashed)} crashed or did not end: " + ", ".join(c.name for c in crashed[:10]))
    return 0 if share >= args.at_least and not crashed and not lost else 1


if __name__ == "__main__":
    sys.exit(main())
