"""Measures what the engine itself costs a step: admission, planning, filling and committing, without any computation.

Example: python bench/scheduler_cost.py model.gguf --waiting 0 1000

The tier `null` computes nothing, so a step is the scheduler, the step descriptor and the packets' way through the ring.
Microseconds come from the engine's own timeline: the sum of admit, plan, fill and commit, and the whole step, each as
the median over steps in which all slots decode. Waiting requests belong to --tenants tenants of the batch class.
"""

import argparse
import json
import pathlib
import statistics
import tempfile
import time

import zinc_rt

OWN = ("admit", "plan", "fill", "commit")


def measure(args, n_waiting):
    quota = zinc_rt.TenantQuota(
        max_concurrent_slots=args.slots,
        max_kv_pages=1 << 24,
        decode_tokens_per_s=1e9,
        prefill_tokens_per_s=1e9,
        qos_class="batch",
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        zinc_rt.Engine(
            args.model, tier="null", max_slots=args.slots, queue_cap=max(1, n_waiting + args.slots)
        ) as engine,
    ):
        sessions = [engine.tenant(f"tenant {i}", quota).session() for i in range(args.tenants)]
        path = pathlib.Path(folder) / "trace.json"
        # Kept alive: a stream that is let go is cancelled.
        streams = [
            sessions[i % args.tenants].stream(
                token_ids=[1 + i % 97, 2, 3], max_tokens=args.tokens, ignore_eos=True, stream_capacity=args.tokens
            )
            for i in range(args.slots + n_waiting)
        ]
        while engine.stats()["running"] < args.slots:
            time.sleep(0.01)
        with engine.trace(str(path)):
            time.sleep(args.seconds)
        for stream in streams:
            stream.cancel()
        events = json.loads(path.read_text())["traceEvents"]
    phases, own, whole = {}, [], []
    for event in events:
        if event.get("ph") != "X" or event.get("pid") != 1 or event.get("tid") != 1:
            continue
        if event["name"] == "step":
            if len(phases) == len(OWN):
                own.append(sum(phases.values()))
            phases = {}
            keep = event["args"]["decode"] == args.slots and event["args"]["waiting"] >= n_waiting * 0.9
            if keep:
                whole.append(event["dur"])
        elif event["name"] in OWN and keep:
            phases[event["name"]] = event["dur"]
    return {
        "slots": args.slots,
        "waiting": n_waiting,
        "tenants": args.tenants,
        "steps": len(whole),
        "own_us": statistics.median(own),
        "own_p99_us": statistics.quantiles(own, n=100)[98],
        "step_us": statistics.median(whole),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--waiting", type=int, nargs="+", default=[0, 1000])
    parser.add_argument("--tenants", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=8000, help="of each request; more than are made in the time")
    parser.add_argument("--seconds", type=float, default=0.15, help="to record")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [measure(args, n) for n in args.waiting]
    for row in rows:
        print(
            json.dumps(row)
            if args.json
            else "  ".join(f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
        )


if __name__ == "__main__":
    main()
