"""Engine.trace and Engine.timeline: what runs inside a with statement, as a file or as a Timeline."""

import contextlib
import os
import tempfile

from .timeline import Timeline


@contextlib.contextmanager
def trace(engine, path, n_records: int = 1 << 18):
    """Records what the step thread does and writes it to `path` as Chrome trace JSON, which ui.perfetto.dev shows.

    The newest n_records spans are kept. The file is written after an exception too.
    """
    engine.start_trace(n_records)
    try:
        yield engine
    finally:
        engine.stop_trace(path)


@contextlib.contextmanager
def timeline(engine, n_records: int = 1 << 18):
    """Records what the step thread does. The Timeline that it gives is filled at the end of the with statement."""
    recorded = Timeline()
    with tempfile.TemporaryDirectory(prefix="zinc_rt-") as folder:
        path = os.path.join(folder, "trace.json")
        try:
            with trace(engine, path, n_records):
                yield recorded
        finally:
            recorded._read(path)
