# SPDX-License-Identifier: Apache-2.0
"""One side of a comparison, in a process of its own: it loads once and then runs bursts on command.

Started by `Side`, which stops the process (SIGSTOP) whenever it is not that side's turn: threads of a runtime that spin
after a run then take no time from another. Commands and answers are lines of JSON on a pipe; large arrays go through
files."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def status_of(key):
    """Bytes of a line of /proc/self/status; 0: there is none."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


# ---- in the process of the side ----

class Server:
    def __init__(self, how):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:how["threads"]])
        self.how, self.contender, self.model = how, None, None

    def open(self, spec, shapes, engine):
        """Loads, and runs once."""
        import numpy  # noqa: F401: no side's time
        from models import Model
        from peers import SIDES, Settings
        how = self.how
        self.model = Model(spec, shapes)
        self.settings = Settings(how["threads"], how["device"], how["tune"], how["timing_cache"], how["library"],
                                 how["allow"], engine)
        self.contender = None  # memory of the model before goes first
        made = SIDES[how["side"]]
        version = made.version(self.settings)  # imports the runtime
        before = status_of("VmRSS")
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        start = time.perf_counter()
        self.contender = made(self.model, self.settings)
        loaded = time.perf_counter()
        self.contender.run()
        return {"version": version, "load_s": loaded - start, "first_result_s": time.perf_counter() - start,
                "memory_before": before}

    def build(self, spec, shapes, engine):
        from models import Model
        from peers import Settings, Sinter
        how = self.how
        settings = Settings(how["threads"], how["device"], how["tune"], how["timing_cache"], how["library"],
                            how["allow"], engine)
        seconds = Sinter.build(Model(spec, shapes), settings)
        return {"build_s": seconds, "build_peak": status_of("VmHWM"), "engine_bytes": os.path.getsize(engine)}

    def outputs(self, path):
        import numpy
        self.contender.run()
        arrays = self.contender.outputs()
        numpy.savez(path, *arrays)
        return {"count": len(arrays)}

    def burst(self, seconds, least):
        """Times of runs, back to back; the first, which finds cold caches and sleeping threads, is not counted."""
        clock, run, times = CLOCKS[self.how["clock"]], self.contender.run, []
        run()
        end = clock() + seconds
        while True:
            start = clock()
            run()
            now = clock()
            if now > start: # The processor's time does not always move on over a run of a microsecond.
                times.append(now - start)
            if now >= end and len(times) >= least:
                return {"times": times}

    def steps(self):
        from peers import Sinter
        timed = Sinter(self.model, self.settings, timing=True)
        for _ in range(20):
            timed.run()
        return {"steps": timed.steps()}

    def peak(self):
        return {"peak": status_of("VmHWM")}


def serve():
    server = Server(json.loads(sys.stdin.readline()))
    out = os.dup(1)
    os.dup2(2, 1)  # what a runtime prints is no answer
    for line in sys.stdin:
        command = json.loads(line)
        name = command.pop("command")
        try:
            answer = getattr(server, name)(**command)
        except Exception as error:  # what a side cannot do is a fact about it
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(out, (json.dumps(answer) + "\n").encode())


# ---- in the process that compares ----

class SideError(Exception):
    pass


class Side:
    """A side's process. It runs while a command of it does, and is stopped otherwise."""

    def __init__(self, name, how):
        self.name, self.is_stopped = name, False
        self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.send({**how, "side": name})

    def send(self, message):
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise SideError(f"the process of {self.name} ended") from None

    def ask(self, command, **arguments):
        if self.is_stopped:
            os.kill(self.process.pid, signal.SIGCONT)
            self.is_stopped = False
        self.send({"command": command, **arguments})
        line = self.process.stdout.readline()
        if not line:
            raise SideError(f"the process of {self.name} ended with status {self.process.wait()}")
        self.stop()
        answer = json.loads(line)
        if "error" in answer:
            raise SideError(answer["error"])
        return answer

    def stop(self):
        """Stops all of its threads, and waits until they are."""
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
        self.is_stopped = True

    def outputs(self):
        import numpy
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "outputs.npz")
            count = self.ask("outputs", path=path)["count"]
            with numpy.load(path) as arrays:
                return [arrays[f"arr_{i}"] for i in range(count)]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def once(name, how, command, **arguments):
    """One command in a process that ends after it."""
    with Side(name, how) as side:
        return side.ask(command, **arguments)


if __name__ == "__main__":
    serve()
