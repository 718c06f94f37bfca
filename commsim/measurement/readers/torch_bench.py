"""What does torch's all_reduce_bench.py print? Each rank says its own time, and counts 2 x size / time as throughput.

Its time is the mean over ranks (the early ones wait for the late) and the median over rounds, of which the first warms
up; the exact time follows from the throughput, which is printed in more digits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import fmean, median

from commsim.collectives.kinds import ALL_REDUCE
from commsim.measurement.doubts import Doubts
from commsim.measurement.records import Measurement, Row, Timing

_SIZE = re.compile(r"data size: (\d{1,6}(?:\.\d{1,6})?) ?GB")
_RANK = re.compile(r"^\s*(\d{1,6}):\s*$")
_TIME = re.compile(r"^\s*duration: (\d{1,9}\.\d{1,9}) ?sec")
_RATE = re.compile(r"algo throughput: (\d{1,18}(?:\.\d{1,9})?) ?bps")
_VERSION = re.compile(r"NCCL version (\d+\.\d+(?:\.\d+)?)")
_GB, _BITS = 1e9, 8
_APART = 0.02  # the duration has 4 decimals


class Reader:
    """Reads the lines of every rank."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._size: float | None = None
        self._rank: int | None = None
        self._duration: float | None = None
        self._version = ""
        self._times: dict[int, list[float]] = defaultdict(list)
        self._doubts = Doubts()

    def line(self, number: int, text: str) -> None:
        """Read a line."""
        if found := _RATE.search(text):
            self._take(number, float(found[1]))
        elif found := _RANK.match(text):
            self._rank = int(found[1])
        elif found := _TIME.match(text):
            self._duration = float(found[1])
        elif found := _SIZE.search(text):
            self._size = float(found[1]) * _GB
        elif found := _VERSION.search(text):
            self._version = found[1]

    def _take(self, number: int, rate: float) -> None:
        """Keep the time of one rank in one round."""
        rank, duration = self._rank, self._duration
        self._rank = self._duration = None
        if rank is None or duration is None or self._size is None or not rate:
            self._doubts.problem(f"line {number}: a throughput without its rank, size or duration is left out")
            return
        seconds = 2 * self._size * _BITS / rate
        if duration and abs(seconds / duration - 1) > _APART:
            self._doubts.problem(f"line {number}: {duration} s is not 2 x size / throughput, {seconds:.4g} s")
        self._times[rank].append(seconds)

    def measurements(self, source: str) -> list[Measurement]:
        """Return the one measurement that there is, if any."""
        if not self._times or self._size is None:
            return []
        rounds = min(len(times) for times in self._times.values())
        if any(len(times) != rounds for times in self._times.values()):
            self._doubts.problem(f"not every rank has its {rounds} rounds: only those are kept that all have")
        samples = tuple(tuple(self._times[rank][:rounds]) for rank in sorted(self._times))
        ranks = max(self._times) + 1
        if ranks != len(self._times):
            self._doubts.problem(f"{len(self._times)} of {ranks} ranks say their times")
        seconds = median(fmean(iteration) for iteration in zip(*samples))
        return [
            Measurement(
                candidates=((ALL_REDUCE, ranks),),
                rows=(Row(round(self._size), 0, Timing(seconds, samples=samples)),),
                redop="sum",
                library="nccl" if self._version else "",
                version=self._version,
                tool="all_reduce_bench",
                source=source,
                notes=("the time is the mean over ranks, the median over rounds",),
                problems=tuple(self._doubts.problems),
            )
        ]
