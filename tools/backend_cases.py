#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ONNX backend cases through `sinter test`, prints the count and the failures grouped by reason.

The cases go to the command in batches; where a batch ends without its last line (a crash), each of its cases is run
alone, so that one bad case cannot hide others.

--expected names the list of the cases that fail, each below its reason. Exit status 0: exactly the listed cases failed,
and none crashed; a listed case that passes is an error too, unless its reason begins with "Either way:". --against
another device: every case that passes there passed here. --bless writes the list."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

EITHER = "Either way:"  # how a sum is rounded decides: some devices and CPUs pass
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


def expected_of(path):
    """{case: reason} of a list: lines of cases below a line '# reason'."""
    expected, reason = {}, "no reason given"
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.strip():
            expected[line.strip()] = reason
    return expected


def bless(path, reasons):
    """Writes the list of the cases that failed. A case that was listed before keeps its reason."""
    old = expected_of(path) if path.is_file() else {}
    by_reason = collections.defaultdict(list)
    for reason, cases in reasons.items():
        for case in cases:
            name = f"{case.parent.name}/{case.name}"
            by_reason[old.get(name, reason)].append(name)
    for name, reason in old.items():
        if reason.startswith(EITHER) and name not in by_reason[reason]:
            by_reason[reason].append(name)
    path.write_text("\n\n".join("\n".join([f"# {reason}", *sorted(cases)]) for reason, cases in sorted(by_reason.items())) + "\n")


def differ(expected, reasons):
    """Prints what differs from the list, in both directions; gives how many cases differ."""
    failed = {f"{case.parent.name}/{case.name}": reason for reason, cases in reasons.items() for case in cases}
    for name in sorted(failed.keys() - expected.keys()):
        print(f"FAIL not expected: {name}: {failed[name]}")
    gone = [name for name in sorted(expected.keys() - failed.keys()) if not expected[name].startswith(EITHER)]
    for name in gone:
        print(f"FAIL expected to fail ({expected[name]}), but it passes or is gone: {name}")
    return len(failed.keys() - expected.keys()) + len(gone)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--against", help="a device: all that passes there must pass here")
    parser.add_argument("--expected", type=pathlib.Path, help="the list of the cases that fail")
    parser.add_argument("--bless", action="store_true", help="write that list")
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
    lost = unlike = 0
    if args.against:
        lost = compare(results, run_all(args.sinter, batches, args.against, args.jobs), args.device, args.against)
    elif args.bless:
        bless(args.expected, reasons)
    elif args.expected:
        unlike = differ(expected_of(args.expected), reasons)
    print(f"summary: {args.device}: {good} of {count} cases pass ({100 * good / count:.1f} %)" +
          (f", {lost} of those that pass on {args.against} do not" if args.against else "") +
          (f", {unlike} not as expected" if args.expected else ""))
    if crashed:
        print(f"{len(crashed)} crashed or did not end: " + ", ".join(c.name for c in crashed[:10]))
    return 1 if crashed or lost or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
