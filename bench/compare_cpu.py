"""Our engine against llama.cpp on the same file with the same threads, by turns, and the ratio of medians.

Example: python bench/compare_cpu.py model.gguf --threads 1 --peer-python /tmp/peer/bin/python -o comparison

The peer is the package llama-cpp-python, built from its source distribution for the processor at hand in an environment
of its own (it is never imported here; bench/llama_peer.py runs there):

    python3 -m venv /tmp/peer
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" /tmp/peer/bin/pip install \\
        --no-binary llama-cpp-python llama-cpp-python

Each figure comes from a process of its own, ours and the peer's in turn, the order changing with each round; each
warms up first. Ours is `zinc-rt bench`: the engine as a client has it, scheduler, greedy sampling and text included, in
wall time. The peer's is the time inside of its llama_decode calls alone, with random ids for the next token and no
sampling. Both: random prompts, nothing from a prefix cache. The peer's KV cache is f16, ours too unless --kv-dtype says
otherwise. --busy measures all of it again with a process that never rests on every core, and what each side keeps.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHORT_CONTEXT = 16  # of zinc-rt bench, where the context is not the point
WINDOW, WINDOWS = 32, 3  # of zinc-rt bench at long contexts; a round's figure is the median of so many


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What both sides are asked for. tokens: of the prompt, or decoded by each stream."""

    phase: str
    tokens: int
    streams: int = 1
    context: int = SHORT_CONTEXT

    def label(self) -> str:
        if self.phase == "prefill":
            return f"prefill {self.tokens}"
        if self.phase == "context":
            return f"decode at {self.context}"
        return f"decode x{self.streams}"


@dataclasses.dataclass
class Row:
    """Tokens a second of both sides, a value a round."""

    model: str
    threads: int
    is_busy: bool
    measurement: Measurement
    ours: list[float] = dataclasses.field(default_factory=list)
    peer: list[float] = dataclasses.field(default_factory=list)

    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.peer)

    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.peer, strict=True)]


def run_json(command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-8:])  # the peer says a lot before
        sys.exit(f"{' '.join(map(str, command))}\n{last}")
    return done.stdout


def measure_ours(args, model, threads, m: Measurement):
    """The round's figure, and what it was run with. The context may be less than asked: the model's end."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "speed.json"
        command = [*args.zinc, "bench", model, "--only", m.phase, "--threads", threads, "--json", out]
        command += ["--tier", "t_cpu", "--reps", WINDOWS if m.phase == "context" else 1]
        command += {
            "prefill": ["--prompt", m.tokens],
            "decode": ["--gen", m.tokens],
            "batch": ["--gen", m.tokens, "--batch", m.streams],
            "context": ["--gen", WINDOW, "--context", m.context],
        }[m.phase]
        for name in ("kernels", "kv_dtype", "arithmetic"):
            if getattr(args, name):
                command += [f"--{name.replace('_', '-')}", getattr(args, name)]
        run_json(command)
        result = json.loads(out.read_text())
    row = result["rows"][0]
    return row["tokens_per_s"]["median"], row["context"], result["ran"]


def measure_peer(args, model, threads, m: Measurement):
    command = [args.peer_python, HERE / "llama_peer.py", model, "--threads", threads, "--streams", m.streams]
    command += ["--what", "prefill" if m.phase == "prefill" else "decode", "--tokens", m.tokens]
    command += ["--context", m.context, "--flash-attn", args.peer_flash_attn]
    if m.phase == "context":
        command += ["--windows", WINDOWS]
    result = json.loads(run_json(command).splitlines()[-1])
    return statistics.median(result.pop("tokens_per_s")), result


@contextlib.contextmanager
def every_core_busy(is_wanted: bool):
    """A process that never rests for each core that this one may use."""
    cores = sorted(os.sched_getaffinity(0)) if is_wanted else []
    burners = [
        subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"])
        for core in cores
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def fair_share(threads: int) -> float:
    """Of a processor that each of our threads may hope for while every core is busy."""
    cores = len(os.sched_getaffinity(0))
    return min(1.0, cores / (cores + threads))


def wanted(args) -> list[Measurement]:
    all_of_them = [Measurement("prefill", args.prompt), Measurement("decode", args.gen)]
    all_of_them += [Measurement("batch", args.gen, n) for n in args.batch]
    all_of_them += [Measurement("context", WINDOW, 1, n) for n in args.context]
    return [m for m in all_of_them if args.only is None or m.phase in args.only]


def compare(args, model, threads, m: Measurement, is_busy: bool, ran) -> Row:
    rounds = args.context_rounds if m.phase == "context" else args.rounds
    row = Row(pathlib.Path(model).name, threads, is_busy, m)
    with every_core_busy(is_busy):
        for number in range(rounds):
            for side in ("ours", "peer") if number % 2 == 0 else ("peer", "ours"):
                if side == "ours":
                    figure, context, ran["ours"][row.model] = measure_ours(args, model, threads, m)
                    row.ours.append(figure)
                    # What the model had room for; the first round starts with us, so the peer does the same.
                    row.measurement = m = dataclasses.replace(m, context=context)
                else:
                    figure, ran["peer"] = measure_peer(args, model, threads, m)
                    row.peer.append(figure)
    return row


def with_spread(values, digits=1) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def quiet_twin(rows, row):
    """The same measurement without the busy cores."""
    key = (row.model, row.threads, row.measurement)
    return next(r for r in rows if not r.is_busy and (r.model, r.threads, r.measurement) == key)


def markdown(ran, rows) -> str:
    peer, machine = ran["peer"], ran["machine"]
    lines = [f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f} before the run."]
    for model, ours in ran["ours"].items():
        lines.append(
            f"{model} ({ours['file_bytes'] / 1e6:.1f} MB, {ours['model']}): zinc-rt {ours['version']}, "
            f"{ours['device']}, arithmetic {ours['arithmetic']}, activations {ours['activations']}, "
            f"KV cache {ours['kv_dtype']}, clamps: {', '.join(ours['clamps']) or 'none'}."
        )
    lines.append(f"Peer: llama-cpp-python {peer['version']} ({peer['features']}), flash attention {ran['flash_attn']}.")
    lines += ["", "| model | threads | what | ours, tokens/s | llama.cpp, tokens/s | ratio (of a round) |"]
    lines.append("|---|---|---|---|---|---|")
    for r in rows:
        if not r.is_busy:
            ratio = f"{r.ratio():.2f} ({min(r.ratios()):.2f} to {max(r.ratios()):.2f})"
            ours, theirs = with_spread(r.ours), with_spread(r.peer)
            lines.append(f"| {r.model} | {r.threads} | {r.measurement.label()} | {ours} | {theirs} | {ratio} |")
    if any(r.is_busy for r in rows):
        lines += ["", "With every core busy; kept is by the same figure without:", ""]
        lines += ["| model | threads | what | ours, tokens/s | kept | llama.cpp, tokens/s | kept | fair share |"]
        lines.append("|---|---|---|---|---|---|---|---|")
    for r in rows:
        if r.is_busy:
            quiet = quiet_twin(rows, r)
            kept = [
                f"{statistics.median(b) / statistics.median(a):.0%}"
                for a, b in ((quiet.ours, r.ours), (quiet.peer, r.peer))
            ]
            lines.append(
                f"| {r.model} | {r.threads} | {r.measurement.label()} | {with_spread(r.ours)} | {kept[0]} | "
                f"{with_spread(r.peer)} | {kept[1]} | {fair_share(r.threads):.0%} |"
            )
    return "\n".join(lines) + "\n"


def draw(path, rows):
    """A panel a model and number of threads: speed by the peer's median; whiskers: the least and the largest round."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys((r.model, r.threads, r.is_busy) for r in rows))
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(9, 3.2 * len(panels)), squeeze=False)
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        inside = [r for r in rows if (r.model, r.threads, r.is_busy) == panel]
        for side, (name, offset) in enumerate((("ours", -0.2), ("llama.cpp", 0.2))):
            for i, r in enumerate(inside):
                values, unit = (r.ours, r.peer)[side], statistics.median(r.peer)
                median = statistics.median(values)
                spread = [[(median - min(values)) / unit], [(max(values) - median) / unit]]
                label = name if i == 0 else None
                axis.bar(i + offset, median / unit, 0.38, yerr=spread, capsize=3, color=f"C{side}", label=label)
                axis.annotate(f"{median:.1f}", (i + offset, max(values) / unit), ha="center", va="bottom", fontsize=8)
        axis.set_xticks(range(len(inside)), [r.measurement.label() for r in inside])
        axis.set_ylabel("speed by llama.cpp's\n(numbers: tokens/s)")
        axis.margins(y=0.15)
        axis.set_title(f"{panel[0]}, threads: {panel[1]}{', every core busy' if panel[2] else ''}", fontsize=10)
        axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def processor() -> str:
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")


def default_zinc() -> list[str]:
    built = HERE.parent / "build" / "release" / "bin" / "zinc-rt"
    return [str(built)] if built.is_file() else [sys.executable, "-m", "zinc_rt"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="model")
    parser.add_argument("--peer-python", required=True, help="interpreter that has llama-cpp-python")
    parser.add_argument("--zinc", nargs="+", default=default_zinc(), help="our program; default: of build/release")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--context-rounds", type=int, default=2, help="each fills the context anew")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--gen", type=int, default=64, help="tokens that a stream decodes a round")
    parser.add_argument("--batch", type=int, nargs="*", default=[8, 16], help="streams at once")
    parser.add_argument("--context", type=int, nargs="*", default=[4096], help="tokens held before decoding")
    parser.add_argument("--only", nargs="+", choices=("prefill", "decode", "batch", "context"))
    parser.add_argument("--busy", action="store_true", help="also with a busy process on every core")
    parser.add_argument("--kernels", help="a kernel set of ours")
    parser.add_argument("--kv-dtype", help="of ours")
    parser.add_argument("--arithmetic", help="of ours")
    parser.add_argument("--peer-flash-attn", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="results.json, results.md and speed.png")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    machine = {"processor": processor(), "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}
    ran = {"machine": machine, "ours": {}, "peer": {}, "flash_attn": args.peer_flash_attn}
    rows = []
    for model in args.models:
        for threads in args.threads:
            for m in wanted(args):
                for is_busy in (False, True) if args.busy else (False,):
                    row = compare(args, model, threads, m, is_busy, ran)
                    rows.append(row)
                    setting = f"{row.model}, threads: {threads}{', every core busy' if is_busy else ''}"
                    print(f"{setting}, {row.measurement.label()}: {row.ratio():.2f}", file=sys.stderr)
    text = markdown(ran, rows)
    print(text, end="")
    (out / "results.md").write_text(text)
    table = [dataclasses.asdict(r) | {"ratio": r.ratio()} for r in rows]
    (out / "results.json").write_text(json.dumps({"ran": ran, "rows": table}, indent=1) + "\n")
    draw(out / "speed.png", rows)


if __name__ == "__main__":
    main()
