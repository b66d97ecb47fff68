"""bench/structured.py against a server of this build."""

import json
import subprocess
import sys
from pathlib import Path

from server_process import serving

SCRIPT = Path(__file__).parent.parent / "bench" / "structured.py"


def run(server, tmp_path, *arguments):
    out = tmp_path / "out.json"
    command = [sys.executable, SCRIPT, "--url", server.url, "--rounds", "1", "--json", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(out.read_text())


def test_both_measurements(tiny_model, tmp_path):
    with serving(tiny_model, "--max-slots", "8", "-c", "512") as server:
        text, rows = run(server, tmp_path, "--streams", "1", "3", "--tokens", "24")
        assert [row["streams"] for row in rows] == [1, 3] and all(len(row["with"]) == 1 for row in rows)
        assert text.count("\n| 3 | ") == 1
        text, result = run(server, tmp_path, "--hostile", "--tokens", "40")
        assert all(len(gaps) >= 20 for gaps in result["gaps"].values()), text
        # Whatever of them has had its turn was served, refused by name or ended; none failed in the server.
        assert result["statuses"] and all(set(seen) <= {200, 400} for seen in result["statuses"].values())
