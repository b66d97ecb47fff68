"""What bench/gpu.sh or bench/gpu_compare.sh measured as one JSON file, a table and a picture, beside llama.cpp.

    bench/gpu_compare.sh BEFORE AFTER gpu-compare LLAMA
    python bench/gpu_report.py gpu-compare/after --peer gpu-compare/peer --json docs/benchmarks/h200.json \\
      --plot docs/benchmarks/h200.png

Prints the table as Markdown. The picture needs matplotlib.
"""

import argparse
import json
import pathlib
import re
import statistics

POINTS = [("prefill", 512), ("prefill", 2048), ("batch", 1), ("batch", 16), ("batch", 64)]
FILE = re.compile(r"(?P<model>.+?)(?P<fast>-fast)?-(decode|prefill-\d+)\.json$")


def label(point: tuple[str, int]) -> str:
    phase, n = point
    return f"prefill {n:,}" if phase == "prefill" else f"decode {n}"


def read(folder: pathlib.Path) -> dict[str, dict]:
    """Each model's runs: what ran and its rows, a file each."""
    models: dict[str, dict] = {}
    for path in sorted(folder.glob("*.json")):
        match = FILE.match(path.name)
        if match is None:
            continue
        report = json.loads(path.read_text())
        asked = "fast" if match["fast"] else "exact"
        if report["ran"]["arithmetic"] != asked:
            raise SystemExit(f"{path}: arithmetic {report['ran']['arithmetic']} ran, {asked} was asked for")
        models.setdefault(match["model"], {"runs": []})["runs"].append(report)
    if not models:
        raise SystemExit(f"{folder} has no results of bench/gpu.sh")
    return models


def read_peer(folder: pathlib.Path | None) -> dict[str, dict[tuple[str, int], float]]:
    """llama.cpp's tokens a second by model and point: of several runs of a batch the median."""
    peers: dict[str, dict[tuple[str, int], float]] = {}
    for path in sorted(folder.glob("*-bench.json")) if folder else []:
        values = peers.setdefault(path.name.removesuffix("-bench.json"), {})
        for row in json.loads(path.read_text() or "[]"):
            point = ("prefill", row["n_prompt"]) if row["n_prompt"] else ("batch", 1)
            values[point] = statistics.median(row["samples_ts"])
    for path in sorted(folder.glob("*-batch.jsonl")) if folder else []:
        values = peers.setdefault(path.name.removesuffix("-batch.jsonl"), {})
        for line in path.read_text().splitlines():
            if line.startswith("{") and (row := json.loads(line))["pl"] > 1:
                values["batch", row["pl"]] = row["speed_tg"]
    return {model: values for model, values in peers.items() if values}


def medians(runs: list[dict], arithmetic: str) -> dict[tuple[str, int], float]:
    """Tokens a second by point."""
    found = {}
    for run in runs:
        if run["ran"]["arithmetic"] != arithmetic:
            continue
        for row in run["rows"]:
            n = row["tokens"] if row["phase"] == "prefill" else row["streams"]
            found[row["phase"], n] = row["tokens_per_s"]["median"]
    return found


def table(models: dict[str, dict], peers: dict[str, dict]) -> str:
    lines = [
        "| model | | " + " | ".join(label(point) for point in POINTS) + " |",
        "|---|---|" + "---|" * len(POINTS),
    ]
    for name, model in models.items():
        rows = {
            "exact": medians(model["runs"], "exact"),
            "fast": medians(model["runs"], "fast"),
            "llama.cpp": peers.get(name, {}),
        }
        for who, values in rows.items():
            if values:
                cells = [f"{values[point]:,.0f}" if point in values else "" for point in POINTS]
                lines.append(f"| {name} | {who} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(models: dict[str, dict], peers: dict[str, dict], device: str, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(models), figsize=(3.4 * len(models), 4), squeeze=False)
    for axis, (name, model) in zip(axes[0], models.items(), strict=True):
        peer = peers.get(name, {})
        points = [point for point in POINTS if point in peer]
        for offset, arithmetic, color in ((-0.2, "exact", "#4878a8"), (0.2, "fast", "#d08030")):
            values = medians(model["runs"], arithmetic)
            at = [i for i, point in enumerate(points) if point in values]
            axis.bar(
                [i + offset for i in at],
                [values[points[i]] / peer[points[i]] for i in at],
                0.4,
                color=color,
                label=arithmetic,
            )
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(points)), [label(point) for point in points], rotation=45, ha="right", fontsize=8)
        axis.set_title(name, fontsize=9)
        axis.set_ylim(bottom=0)
    axes[0][0].set_ylabel("tokens a second, times llama.cpp's")
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"T-CUDA on {device}; random weights; llama.cpp measured in the same call", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "results", type=pathlib.Path, help="the folder that bench/gpu.sh wrote, or after/ of bench/gpu_compare.sh"
    )
    parser.add_argument("--peer", type=pathlib.Path, metavar="FOLDER", help="peer/ of bench/gpu_compare.sh")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all values to it")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE", help="draw ratios to llama.cpp (needs matplotlib)")
    args = parser.parse_args()
    models = read(args.results)
    peers = read_peer(args.peer)
    machine = args.results / "machine.csv"
    device = next(iter(models.values()))["runs"][0]["ran"]["device"].split(",")[0]
    if args.json:
        command = args.results / "command"
        what = command.read_text().strip() if command.exists() else "bench/gpu.sh"
        about = {"command": what, "machine": machine.read_text().strip() if machine.exists() else device}
        for name, values in peers.items():
            models.setdefault(name, {"runs": []})["llama_cpp"] = {
                label(point): value for point, value in values.items()
            }
        args.json.write_text(json.dumps({**about, "models": models}, indent=1) + "\n")
    if args.plot:
        draw(models, peers, device, args.plot)
    print(table(models, peers))


if __name__ == "__main__":
    main()
