"""One child process for each method: what it does to time and memory, or how it fails, harms nobody else."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import resource
import warnings
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from registration_bench.methods import METHODS, Answer
from registration_bench.problems import Cell, Problem, RealCell

ANSWER, NO_ANSWER, TIMEOUT, MEMORY, UNAVAILABLE, DIED = (
    "answer",
    "no answer",
    "timeout",
    "memory",
    "unavailable",
    "died",
)
MEMORY_LIMIT = 12 * 2**30
START_SECONDS = 300.0  # imports, compilation and the untimed first fits
SHORT, REPEATS = 0.1, 3  # seconds below which a fit is timed again, so many times


@dataclass(frozen=True)
class Outcome:
    """How one fit went; errors are NaN without an answer."""

    status: str
    wall_seconds: float = np.nan
    cpu_seconds: float = np.nan
    degrees: float = np.nan
    shift: float = np.nan
    precision: float = np.nan
    recall: float = np.nan
    megabytes: float = np.nan
    first_seconds: float = np.nan

    @property
    def seconds(self) -> float:
        """What the fit takes when nothing else interferes: the lesser of time passed and processor time spent."""
        return min(self.wall_seconds, self.cpu_seconds)

    def row(self) -> list[str]:
        """As text for a table."""
        return [value if isinstance(value, str) else f"{value:.6g}" for value in asdict(self).values()]


MEASURES = tuple(field.name for field in fields(Outcome))


class Worker:
    """A child process that fits problems with one method; started anew after it was stopped or died."""

    def __init__(self, method: str, limit: float) -> None:
        self.method, self.limit = method, limit
        self._process = self._pipe = None
        self._unavailable = ""

    def fit(self, cell: Cell | RealCell) -> Outcome:
        """Fit one problem within the time limit."""
        if self._unavailable:
            return Outcome(self._unavailable)
        if self._process is None:
            answer = self._start()
            if answer != "ready":
                self.close()
                self._unavailable = answer
                return Outcome(answer)
        self._pipe.send(cell)
        return self._receive(self.limit + 5 + getattr(cell, "n", 0) / 1e5)  # drawing the problem takes time too

    def _start(self) -> str:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.method), daemon=True)
        self._process.start()
        theirs.close()
        answer = self._receive(START_SECONDS)
        return answer if isinstance(answer, str) else answer.status

    def _receive(self, seconds: float):
        """Wait for the child until it has used up its time: both on the clock and on the processor."""
        start, cpu_start = perf_counter(), _cpu_seconds(self._process.pid)
        try:
            while perf_counter() - start < 20 * seconds:
                if self._pipe.poll(0.5):
                    return self._in_time(self._pipe.recv())
                passed, used = perf_counter() - start, _cpu_seconds(self._process.pid) - cpu_start
                if min(passed, used) > seconds:
                    break
            outcome = Outcome(TIMEOUT, self.limit, self.limit)
        except (EOFError, ConnectionError):
            outcome = Outcome(DIED)
        self.close()
        return outcome

    def _in_time(self, answer):
        slow = isinstance(answer, Outcome) and answer.seconds > self.limit
        return Outcome(TIMEOUT, answer.wall_seconds, answer.cpu_seconds) if slow else answer

    def close(self) -> None:
        """Stop the child."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None


def _serve(pipe, name: str) -> None:
    """Run in the child: first fits, then one outcome for each problem received."""
    method = METHODS[name]
    silence = os.open(os.devnull, os.O_WRONLY)  # some packages print
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.simplefilter("ignore")
    try:
        for n in method.warm_up:
            for rate in (0.5, 0.95):
                problem = Cell(n, rate, "uniform", 0).make()
                method.fit(problem.X, problem.Y, problem.bound, 0)
    except (ImportError, AttributeError) as error:
        reason, _, _ = str(error).partition(" (")  # without the path
        pipe.send(f"{UNAVAILABLE}: {reason}")
        return
    except Exception:  # a first fit may fail on its own account; the timed ones tell
        pass
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    pipe.send("ready")
    while True:
        try:
            cell = pipe.recv()
        except EOFError:
            return
        pipe.send(measured_fit(name, cell.make(), cell.draw))


def measured_fit(name: str, problem: Problem, seed: int) -> Outcome:
    """Fit in this process; compare the answer with the truth."""
    fit = METHODS[name].fit
    before = _forget_peak()
    start = _clocks()
    try:
        answer = fit(problem.X, problem.Y, problem.bound, seed)
        status = ANSWER if answer is not None and np.isfinite(answer.rotation).all() else NO_ANSWER
    except MemoryError:
        answer, status = None, MEMORY
    except Exception as error:
        answer, status = None, f"error: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    times = _clocks() - start
    megabytes = max(_peak() - before, 0) / 2**20
    errors = compare(answer, problem) if status == ANSWER else (np.nan, np.nan, np.nan, 0.0)
    first = min(times)
    if status in (ANSWER, NO_ANSWER) and first < SHORT:
        times = _times_again(lambda: fit(problem.X, problem.Y, problem.bound, seed))
    return Outcome(status, *times, *errors, megabytes, first)


def _times_again(fit) -> np.ndarray:
    """Median times of further fits: before the first one all memory was given back, and that takes a millisecond."""
    times = []
    for _ in range(REPEATS):
        start = _clocks()
        fit()
        times.append(_clocks() - start)
    return np.median(times, axis=0)


def _clocks() -> np.ndarray:
    """Time on the clock, and processor time of this process."""
    return np.array([perf_counter(), process_time()])


def compare(answer: Answer, problem: Problem) -> tuple[float, float, float, float]:
    """Degrees, shift, precision and recall of an answer."""
    chord = np.linalg.norm(answer.rotation - problem.rotation)  # 2 sqrt(2) sin(angle / 2), in the plane and in space
    degrees = np.degrees(2 * np.arcsin(min(chord / np.sqrt(8), 1.0)))
    shift = np.linalg.norm(answer.translation - problem.translation)
    mask = answer.mask
    if mask is None:
        moved = problem.X @ answer.rotation.T + answer.translation
        mask = np.linalg.norm(problem.Y - moved, axis=1) <= problem.bound
    precision = problem.agrees[mask].mean() if mask.any() else np.nan
    recall = mask[problem.real].mean() if problem.real.any() else np.nan
    return float(degrees), float(shift), float(precision), float(recall)


def _forget_peak() -> int:
    """Give freed memory back, start the peak anew (on Linux) and return the memory in use, in bytes."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return _peak()  # elsewhere the peak never falls: only a new highest counts
    return _kilobytes("VmRSS") * 1024


def _peak() -> int:
    try:
        return _kilobytes("VmHWM") * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _cpu_seconds(process: int) -> float:
    """Processor time of another process; where that cannot be read, the clock decides alone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # in user mode and in the kernel
    except (OSError, IndexError):
        return perf_counter()


def _kilobytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
