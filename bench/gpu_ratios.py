"""Ratios of what bench/gpu_compare.sh measured, as a Markdown table; ends with 1 where one is below 0.98.

A cell is AFTER's tokens a second and, in brackets, AFTER by BEFORE. Of several rounds the medians of all values count.
"""

import argparse
import collections
import json
import pathlib
import re
import statistics
import sys

LEAST = 0.98
FILE = re.compile(r"(?P<model>.+?)-(decode(\.\d+)?|prefill-\d+|context(\.\d+)?)\.json$")


def point(row: dict) -> str:
    match row["phase"]:
        case "prefill":
            return f"prompt of {row['tokens']:,}"
        case "context":
            return f"behind {row['context']:,}"
        case _:
            return f"{row['streams']} stream" + ("s" if row["streams"] > 1 else "")


def read(folder: pathlib.Path) -> dict[tuple[str, str], float]:
    """Tokens a second by model and point."""
    values = collections.defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        # AFTER alone ran in arithmetic `fast`.
        if (match := FILE.match(path.name)) and not match["model"].endswith("-fast"):
            for row in json.loads(path.read_text())["rows"]:
                values[match["model"], point(row)] += row["tokens_per_s"]["values"]
    return {key: statistics.median(of) for key, of in values.items()}


def order(name: str) -> tuple[int, int]:
    kind = next(i for i, word in enumerate(("stream", "prompt", "behind")) if word in name)
    return kind, int(re.sub(r"\D", "", name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, help="the folder that bench/gpu_compare.sh wrote")
    folder = parser.parse_args().results
    before, after = read(folder / "before"), read(folder / "after")
    if not after or before.keys() != after.keys():
        missing = sorted(before.keys() ^ after.keys())
        print(
            f"{folder}: {len(before)} values of BEFORE, {len(after)} of AFTER; in one alone: {missing}", file=sys.stderr
        )
        return 1
    models = list(dict.fromkeys(model for model, _ in after))
    points = sorted({name for _, name in after}, key=order)
    print("| model | " + " | ".join(points) + " |\n|---|" + "---|" * len(points))
    slower = []
    for model in models:
        cells = []
        for name in points:
            if (model, name) not in after:
                cells.append("")
                continue
            ratio = after[model, name] / before[model, name]
            cells.append(f"{after[model, name]:,.0f} ({ratio:.3f})")
            if ratio < LEAST:
                slower.append(f"{model}, {name}: {before[model, name]:,.1f} -> {after[model, name]:,.1f}, {ratio:.3f}")
        print(f"| {model} | " + " | ".join(cells) + " |")
    for line in slower:
        print(f"slower than {LEAST}: {line}", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
