"""Fits that wait for each other: one process at a time, watched, stopped and taken up again."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError

WAITING, RUNNING, STOPPED, FAILED, DONE = "waiting", "running", "stopped", "failed", "done"
PATIENCE = 30.0
"""Seconds that a process has to write its checkpoint before it is ended."""
MOST_POINTS = 600
"""Of a curve; every second one is forgotten where there are more."""
MOST_LINES = 30
"""Of what a process said that was no JSON."""


@dataclass
class Job:
    """One fit: what it reads, where it writes, and how far it is."""

    number: int
    settings: Path
    out: Path
    resume: bool
    state: str = WAITING
    stage: str = "Waiting for its turn"
    epoch: int = 0
    epochs: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""
    fitted: bool = False
    """Whether the run is complete; what follows are scores of other forecasters."""
    began: float = 0.0
    stage_began: float = 0.0
    ended: float = 0.0

    def hear(self, said: dict[str, Any], now: float) -> None:
        """Take in a line of the process."""
        self.fitted = self.fitted or bool(said.get("fitted"))
        self.error = said.get("error", self.error)
        if "stage" in said:
            self.stage = str(said["stage"])
        if "note" in said and said["note"] not in self.notes:
            self.notes.append(str(said["note"]))
        if "epoch" in said:
            self._advance(said, now)

    def _advance(self, said: dict[str, Any], now: float) -> None:
        epoch, epochs = int(said["epoch"]), int(said["epochs"])
        if epoch <= self.epoch or epochs != self.epochs or not self.stage_began:
            self.curve, self.stage_began, self.epochs = [], now, epochs
        self.stage, self.epoch = "Fitting", epoch
        point = {name: v for name, v in said.items() if name == "epoch" or "loss" in name}
        self.curve.append({**point, "at": now})
        if len(self.curve) > MOST_POINTS:
            self.curve = self.curve[::2]

    def seconds_left(self) -> float | None:
        """By the speed of the epochs so far; None before there is one."""
        if self.state != RUNNING or len(self.curve) < 2 or self.fitted:
            return None
        first, last = self.curve[0], self.curve[-1]
        steps = last["epoch"] - first["epoch"]
        return (last["at"] - first["at"]) / max(1, steps) * (self.epochs - self.epoch)

    def to_dict(self) -> dict[str, Any]:
        """For the page."""
        until = self.ended or time.time()
        return {
            "number": self.number,
            "state": self.state,
            "stage": self.stage,
            "epoch": self.epoch,
            "epochs": self.epochs,
            "curve": [{k: v for k, v in one.items() if k != "at"} for one in self.curve],
            "notes": self.notes,
            "error": self.error,
            "fitted": self.fitted,
            "elapsed": until - self.began if self.began else 0.0,
            "left": self.seconds_left(),
        }


class Jobs:
    """The queue and the thread that works it off."""

    def __init__(self, command: Sequence[str] | None = None):
        self._command = tuple(command or (sys.executable, "-P", "-m", "hybridsde.studio.worker"))
        self._jobs: list[Job] = []
        self._process: subprocess.Popen | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def add(self, settings: Path, out: Path, *, resume: bool = False) -> Job:
        """Queue a fit; an `InputError` where one into the same folder waits or runs."""
        with self._changed:
            if any(job.out == out and job.state in (WAITING, RUNNING) for job in self._jobs):
                raise InputError(f"{out.name} is being fitted, or waits for it.")
            job = Job(len(self._jobs) + 1, settings, out, resume)
            self._jobs.append(job)
            self._changed.notify_all()
        return job

    def stop(self, number: int) -> None:
        """Take a fit out of the queue, or have it write its checkpoint and end."""
        with self._changed:
            job = next((one for one in self._jobs if one.number == number), None)
            if job is None:
                raise InputError(f"There is no fit number {number}.")
            if job.state == WAITING:
                job.state, job.stage = STOPPED, "Taken out of the queue"
            elif job.state == RUNNING and self._process is not None:
                job.stage = "Stopping"
                interrupt(self._process)

    def of(self, out: Path) -> Job | None:
        """The latest fit into a folder."""
        return next((job for job in reversed(self._jobs) if job.out == out), None)

    def active(self) -> list[Job]:
        """Those that wait or run, in their order."""
        return [job for job in self._jobs if job.state in (WAITING, RUNNING)]

    def close(self) -> None:
        """End the queue; a fit that runs writes its checkpoint and ends."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            process = self._process
        if process is not None:
            interrupt(process)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(PATIENCE)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                job = self._next()
                if self._closed or job is None:
                    return
                job.state, job.stage, job.began = RUNNING, "Starting", time.time()
                self._process = self._launch(job)
            self._watch(job, self._process)

    def _next(self) -> Job | None:
        return next((job for job in self._jobs if job.state == WAITING), None)

    def _launch(self, job: Job) -> subprocess.Popen:
        words = [*self._command, str(job.settings), str(job.out), *["--resume"] * job.resume]
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # a Ctrl-C in the terminal is ours to hand on
        )

    def _watch(self, job: Job, process: subprocess.Popen) -> None:
        assert process.stdout is not None
        with process:
            tail = listen(job, process.stdout)
            code = process.wait()
        with self._changed:
            self._process, job.ended = None, time.time()
            stopping = job.stage == "Stopping"
            job.state = DONE if code == 0 else STOPPED if stopping else FAILED
            if job.state == DONE:
                job.stage = "Done"
            elif job.state == STOPPED:
                job.stage = "Stopped; it can go on where it was"
            elif job.state == FAILED:
                job.stage = "Failed"
                job.error = job.error or (tail[-1] if tail else f"The process ended with {code}.")


def listen(job: Job, output: Iterable[str]) -> list[str]:
    """Follow a process to its end; returns the last lines that were not for us."""
    tail: list[str] = []
    for line in output:
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if isinstance(said, dict):
            stopping = job.stage == "Stopping"
            job.hear(said, time.time())
            job.stage = "Stopping" if stopping else job.stage
        elif line.strip():
            tail = [*tail, line.strip()][-MOST_LINES:]
    return tail


def interrupt(process: subprocess.Popen) -> None:
    """Ask a fit to end; the worker takes it for a Ctrl-C.

    A Ctrl-C itself is ignored by all processes of a studio that a script started with `&`.
    """
    if process.poll() is None:
        process.terminate()
