# SPDX-License-Identifier: Apache-2.0
"""Timing caches, and what is edited in them. A line of a cache is "problem | device | ... | kernel and tactic | nanoseconds spread"; the
key of an entry is all before the kernel, so an entry holds the times of all tactics that were measured for it."""
import hashlib
import math

from ._core import bytes_memory, strict

MAGIC = b"sinter timing cache "
FAILS = "fails"                                        # stands for the time of a tactic that is not to be taken


class TimingCacheKey:
    """128 bits that stand for a problem on a device."""

    def __init__(self, data):
        self._data = bytes(data)

    @staticmethod
    def parse(text):
        digits = text[2:] if text.lower().startswith("0x") else text
        data = bytes.fromhex(digits)
        if len(data) != 16:
            raise ValueError(f"'{text}' is no key of a timing cache: 0x and 32 hexadecimal digits are wanted")
        return TimingCacheKey(data)

    def __str__(self):
        return "0x" + self._data.hex()

    def __repr__(self):
        return f"<sinter.tensorrt.TimingCacheKey {self}>"

    def __eq__(self, other):
        return isinstance(other, TimingCacheKey) and self._data == other._data

    def __hash__(self):
        return hash(self._data)


@strict
class TimingCacheValue:
    """A tactic, and its time. A negative time is no time."""
    ATTRIBUTES = "tacticHash timingMSec"
    INVALID_TACTIC_HASH = 2 ** 64 - 1

    def __init__(self, tactic_hash=INVALID_TACTIC_HASH, timing_msec=-1.0):
        self.tacticHash, self.timingMSec = int(tactic_hash), float(timing_msec)


def key_of(words):
    return TimingCacheKey(hashlib.blake2b(words.encode(), digest_size=16).digest())


def hash_of(tactic):
    return int.from_bytes(hashlib.blake2b(tactic.encode(), digest_size=8).digest(), "little")


def parsed(line):
    """(words of the key, tactic, time) of a line, or Nones."""
    parts = line.rsplit(" | ", 2)
    return parts if len(parts) == 3 and ":" in parts[0].partition(" ")[0] else (None, None, None)


def milliseconds(time):
    return math.inf if time == FAILS else float(time.split()[0]) / 1e6


class ITimingCache:
    """Measurements that builds use again. Bytes that are no timing cache of sinter (TensorRT's, for example) are left out: the cache
    begins empty, and builds say so."""

    def __init__(self, data=b""):
        data = bytes(data)
        self._is_foreign = bool(data) and not data.startswith(MAGIC)
        self.data = b"" if self._is_foreign else data

    def serialize(self):
        return bytes_memory(self.data)

    def combine(self, input_cache, ignore_mismatch):
        """Adds what this cache lacks. Times of another device have other keys, so nothing has to be ignored."""
        lines = {}
        for line in self.data.splitlines(True) + input_cache.data.splitlines(True):
            lines.setdefault(line.rpartition(b" | ")[0] or line, line)
        self.data = b"".join(lines.values())
        return True

    def reset(self):
        self.data = b""
        return True

    def _entries(self):
        """key -> {hash of a tactic: (its words, its time)}. Lines that are about no problem (its first word has a colon) are none."""
        found = {}
        for line in self.data.decode().splitlines():
            key, tactic, time = parsed(line)
            if key:
                found.setdefault(key_of(key), {}).setdefault(hash_of(tactic), (key, tactic, time))
        return found

    def queryKeys(self):
        return list(self._entries())

    def query(self, key):
        """The fastest tactic; an invalid value where there is none."""
        tactics = self._entries().get(key, {})
        found = min(tactics, key=lambda h: milliseconds(tactics[h][2]), default=None)
        if found is None or tactics[found][2] == FAILS:
            return TimingCacheValue()
        return TimingCacheValue(found, milliseconds(tactics[found][2]))

    def update(self, key, value):
        """Makes a measured tactic of the key the one that builds take, with this time; NaN removes the key. False: nothing is known of
        the key or of the tactic, or the time is no time."""
        tactics, time = self._entries().get(key), value.timingMSec
        if tactics is None or not math.isnan(time) and (value.tacticHash not in tactics or time <= 0):
            return False
        kept = []
        for line in self.data.decode().splitlines():
            words, tactic, _ = parsed(line)
            if not words or key_of(words) != key:
                kept.append(line)
            elif not math.isnan(time):
                kept.append(" | ".join([words, tactic, repr(time * 1e6) if hash_of(tactic) == value.tacticHash else FAILS]))
        self.data = "\n".join([*kept, ""]).encode()
        return True

    def _tactics(self, steps):
        """What is known of each key, as lines in the words of TensorRT's log: the hashes that `update` takes. A key has the names of the
        engine's steps that compute its problem, or that of the problem."""
        for key, tactics in self._entries().items():
            problem = next(iter(tactics.values()))[0].partition(" | ")[0]
            rows = sorted((milliseconds(time), found, tactic) for found, (_, tactic, time) in tactics.items() if time != FAILS)
            for step in [s for s in steps if s["problem"] == problem and rows] or [{"name": problem, "tactic": ""}]:
                yield f"Autotuning op {step['name']}(key: {key}):"
                yield "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tactic_shape"
                for number, (time, found, tactic) in enumerate(rows):
                    kernel, _, shape = tactic.partition(" ")
                    yield f"{number}, {time:.6g}, {time / rows[0][0]:.2f}, 1.00, {kernel.partition('.')[0]}, 0x{found:016x}, {shape}"
                for time, found, _ in [row for row in rows if f" {step['tactic']} " in row[2]][:1] or rows[:1]:
                    yield f"The selected tactic is (tactic hash, cost(in ms)):0x{found:016x}, {time:.6g}"
