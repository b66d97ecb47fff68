"""Engine.trace: a trace of what runs inside a with statement."""

import contextlib


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
