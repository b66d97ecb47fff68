"""What bench/gpu.sh measured as one JSON file, a table and a picture, beside llama.cpp on the same kind of GPU.

    bench/gpu.sh build/release gpu-results
    python bench/gpu_report.py gpu-results --json docs/benchmarks/h200.json --plot docs/benchmarks/h200.png

Prints the table as Markdown. The picture needs matplotlib.
"""

import argparse
import json
import pathlib
import re

# llama.cpp of llama-cpp-python 0.3.36 (CUDA 13, flash attention) on an H200, the same shapes, random weights; tokens a
# second by (phase, tokens or streams). SmolLM2 is Q4_0 there.
PEER = {
    "qwen3-8b-q4_k_m": {
        ("prefill", 512): 9650,
        ("prefill", 2048): 9860,
        ("batch", 1): 262,
        ("batch", 16): 1950,
        ("batch", 64): 4360,
    },
    "qwen3-8b-bf16": {("prefill", 512): 24900, ("prefill", 2048): 26600, ("batch", 1): 203},
    "llama-3.2-1b-bf16": {("prefill", 512): 90900, ("prefill", 2048): 103600, ("batch", 1): 792},
    "qwen3-30b-a3b-q4_k_m": {
        ("prefill", 512): 12170,
        ("prefill", 2048): 11690,
        ("batch", 1): 308,
        ("batch", 16): 1640,
        ("batch", 64): 4430,
    },
    "smollm2-135m-q4_1": {
        ("prefill", 512): 56000,
        ("prefill", 2048): 58300,
        ("batch", 1): 950,
        ("batch", 16): 4990,
        ("batch", 64): 12300,
    },
}
POINTS = [("prefill", 128), ("prefill", 512), ("prefill", 2048), ("batch", 1), ("batch", 16), ("batch", 64)]
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


def table(models: dict[str, dict]) -> str:
    lines = [
        "| model | | " + " | ".join(label(point) for point in POINTS) + " |",
        "|---|---|" + "---|" * len(POINTS),
    ]
    for name, model in models.items():
        rows = {
            "exact": medians(model["runs"], "exact"),
            "fast": medians(model["runs"], "fast"),
            "llama.cpp": PEER.get(name, {}),
        }
        for who, values in rows.items():
            if values:
                cells = [f"{values[point]:,.0f}" if point in values else "" for point in POINTS]
                lines.append(f"| {name} | {who} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(models: dict[str, dict], device: str, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(models), figsize=(3.4 * len(models), 4), squeeze=False)
    for axis, (name, model) in zip(axes[0], models.items(), strict=True):
        peer = PEER.get(name, {})
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
    figure.suptitle(
        f"T-CUDA on {device}; random weights; llama.cpp measured in other runs on the same kind of GPU", fontsize=9
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "results", type=pathlib.Path, help="the folder that bench/gpu.sh wrote, or after/ of bench/gpu_compare.sh"
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all values to it")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE", help="draw ratios to llama.cpp (needs matplotlib)")
    args = parser.parse_args()
    models = read(args.results)
    machine = args.results / "machine.csv"
    device = next(iter(models.values()))["runs"][0]["ran"]["device"].split(",")[0]
    if args.json:
        command = args.results / "command"
        what = command.read_text().strip() if command.exists() else "bench/gpu.sh"
        about = {"command": what, "machine": machine.read_text().strip() if machine.exists() else device}
        args.json.write_text(json.dumps({**about, "models": models}, indent=1) + "\n")
    if args.plot:
        draw(models, device, args.plot)
    print(table(models))


if __name__ == "__main__":
    main()
