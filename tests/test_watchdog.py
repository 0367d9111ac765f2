"""What stands still is ended; what works, or only waits for a moment, is not."""

import subprocess
import sys
import threading
import time

from hybridsde._watchdog import STOOD_STILL, watched


def test_two_threads_that_wait_for_each_other_are_found():
    ended = threading.Event()
    with watched(ended.set, sample=0.02, patience=5):
        assert ended.wait(5)


def test_work_is_left_alone():
    ended = threading.Event()
    with watched(ended.set, sample=0.1, patience=3):
        began = time.monotonic()
        while time.monotonic() - began < 0.8:
            sum(range(1000))
    assert not ended.is_set()


def test_a_process_ends_with_a_line_and_the_code_of_a_failed_fit():
    code = (
        "import threading; from hybridsde import _watchdog as w; w.PATIENCE = 1\n"
        "with w.watched(sample=0.05, patience=2): threading.Event().wait(20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == STOOD_STILL
    assert "nothing has moved" in done.stderr
