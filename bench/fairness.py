"""Measures what an interactive tenant feels of others, and how service is shared.

Example: python bench/fairness.py model.gguf --slots 16 --plot fairness.png

Three experiments on one engine, each with fresh tenants:
  jitter   one interactive stream among slots - 1 batch requests that come and go: p99 and p50 of its decode intervals
  flood    time to first token of interactive requests, one after the other, alone and with --flood batch requests in
           the queue; the difference is given in milliseconds and beside the time of a step and of a chunk
  service  two backlogged tenants whose requests differ in size, and a third of double weight: tokens served to each
           (prompt once, generated twice), as a part of what its weight entitles it to
Intervals and times are taken where the client sits. Batch requests are streams that nobody reads, so they cost this
process nothing.
"""

import argparse
import json
import random
import statistics
import time

import zinc_rt


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))]


class Load:
    """Keeps a number of requests of a tenant with the engine: a new one for each that ends."""

    def __init__(self, tenant, n, rng, vocab_size, prompt, answer):
        self._session, self._n, self._rng = tenant.session(), n, rng
        self._vocab_size, self._prompt, self._answer = vocab_size, prompt, answer
        self._streams = []

    def keep_up(self):
        self._streams = [s for s in self._streams if not s.completion.finish_reason]
        while len(self._streams) < self._n:
            ids = [self._rng.randrange(self._vocab_size) for _ in range(self._rng.randint(*self._prompt))]
            self._streams.append(
                self._session.stream(token_ids=ids, max_tokens=self._rng.randint(*self._answer), ignore_eos=True)
            )

    def stop(self):
        for stream in self._streams:
            stream.cancel()
        self._streams = []


def wait_until_idle(engine):
    while engine.stats()["running"] + engine.stats()["waiting"] > 0:
        time.sleep(0.01)


def quota(args, qos, slots=None, weight=1.0):
    return zinc_rt.TenantQuota(
        qos_class=qos,
        max_concurrent_slots=slots or args.slots,
        max_kv_pages=1 << 20,
        decode_tokens_per_s=1e9,
        prefill_tokens_per_s=1e9,
        weight=weight,
    )


def measure_jitter(engine, args, rng):
    fast = engine.tenant("jitter-interactive", quota(args, "interactive"))
    slow = engine.tenant("jitter-batch", quota(args, "batch", slots=args.slots - 1))
    load = Load(slow, 2 * args.slots, rng, engine.vocab_size, (args.prompt // 4, args.prompt // 2), (128, 512))
    load.keep_up()
    intervals, last = [], None
    # The first tokens come while the batch slots are still filling up.
    total = args.warm + args.tokens
    for n, _ in enumerate(fast.session().stream(token_ids=[1, 2, 3], max_tokens=total, ignore_eos=True)):
        now = time.perf_counter()
        if n > args.warm:
            intervals.append(1e3 * (now - last))
        last = now
        if n % 4 == 0:
            load.keep_up()
    requests = slow.ledger().requests_finished
    load.stop()
    wait_until_idle(engine)
    p50, p99 = quantile(intervals, 0.5), quantile(intervals, 0.99)
    return {
        "n": len(intervals),
        "batch_requests": requests,
        "p50_ms": p50,
        "p99_ms": p99,
        "ratio": p99 / p50,
        "intervals_ms": intervals,
    }


def times_to_first_token(tenant, args, rng, vocab_size):
    times, intervals = [], []
    for _ in range(args.interactive):
        ids = [rng.randrange(vocab_size) for _ in range(args.prompt // 4)]
        start = time.perf_counter()
        moments = [time.perf_counter() for _ in tenant.session().stream(token_ids=ids, max_tokens=4, ignore_eos=True)]
        times.append(1e3 * (moments[0] - start))
        intervals += [1e3 * (b - a) for a, b in zip(moments, moments[1:], strict=False)]
    return times, intervals


def measure_flood(engine, args, rng):
    fast = engine.tenant("flood-interactive", quota(args, "interactive"))
    slow = engine.tenant("flood-batch", quota(args, "batch"))
    alone, _ = times_to_first_token(fast, args, rng, engine.vocab_size)
    load = Load(slow, args.flood, rng, engine.vocab_size, (args.prompt // 2, args.prompt), (16, 128))
    load.keep_up()
    time.sleep(2)
    with_flood, steps = times_to_first_token(fast, args, rng, engine.vocab_size)
    load.stop()
    wait_until_idle(engine)
    # One chunk of prefill, alone on the machine.
    ids = [rng.randrange(engine.vocab_size) for _ in range(args.chunk)]
    chunk = fast.session().generate(token_ids=ids, max_tokens=1).timings.prefill_ms
    moved = quantile(with_flood, 0.99) - quantile(alone, 0.99)
    return {
        "n": len(alone),
        "alone_p50_ms": quantile(alone, 0.5),
        "alone_p99_ms": quantile(alone, 0.99),
        "flood_p50_ms": quantile(with_flood, 0.5),
        "flood_p99_ms": quantile(with_flood, 0.99),
        "moved_ms": moved,
        "step_p99_ms": quantile(steps, 0.99),
        "chunk_ms": chunk,
        "alone_ms": alone,
        "with_flood_ms": with_flood,
    }


def measure_service(engine, args, rng):
    half, n = args.prompt // 8, args.slots
    small = engine.tenant("service-small", quota(args, "standard"))
    large = engine.tenant("service-large", quota(args, "standard"))
    double = engine.tenant("service-double", quota(args, "standard", weight=2.0))
    loads = [
        Load(small, n, rng, engine.vocab_size, (half, 2 * half), (4, 12)),
        Load(large, n, rng, engine.vocab_size, (args.prompt, 2 * args.prompt), (16, 64)),
        Load(double, n, rng, engine.vocab_size, (args.prompt // 2, args.prompt), (8, 32)),
    ]
    names, tenants = ("small", "large", "double"), (small, large, double)

    def served():  # the ledger's service is over the weight already
        return [t.ledger().service for t in tenants]

    begin, end, warm = None, time.perf_counter() + args.seconds, time.perf_counter() + args.seconds / 4
    while time.perf_counter() < end:
        for load in loads:
            load.keep_up()
        if begin is None and time.perf_counter() > warm:
            begin = served()
        time.sleep(0.02)
    gained = [b - a for a, b in zip(begin, served(), strict=True)]
    for load in loads:
        load.stop()
    wait_until_idle(engine)
    mean = statistics.mean(gained)
    return {
        "seconds": 0.75 * args.seconds,
        "over_entitlement": {k: g / mean for k, g in zip(names, gained, strict=True)},
    }


def draw(path, results):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    left.hist(results["jitter"]["intervals_ms"], bins=60)
    left.set(xlabel="decode interval of the interactive stream, ms", ylabel="tokens")
    left.set_title(f"p99 / p50 = {results['jitter']['ratio']:.2f}")
    for key, label in (("alone_ms", "alone"), ("with_flood_ms", "with the flood")):
        values = sorted(results["flood"][key])
        right.plot(values, [i / len(values) for i in range(1, len(values) + 1)], label=label)
    right.set(xlabel="time to first token, ms", ylabel="part of interactive requests")
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--threads", type=int, help="of the engine; default: all")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the longest usual batch prompt")
    parser.add_argument("--chunk", type=int, default=256, help="the engine's chunk_cap, for the flood's yardstick")
    parser.add_argument("--tokens", type=int, default=600, help="intervals to take in jitter")
    parser.add_argument("--warm", type=int, default=300, help="tokens before them")
    parser.add_argument("--interactive", type=int, default=60, help="interactive requests in flood, each time")
    parser.add_argument("--flood", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60, help="of service")
    parser.add_argument("--only", choices=("jitter", "flood", "service"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plot", metavar="FILE")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    results = {}
    with zinc_rt.Engine(args.model, max_slots=args.slots, threads=args.threads, chunk_cap=args.chunk) as engine:
        card = engine.model_card()
        results["ran"] = {
            "model": card.get("name"),
            "tier": engine.tier,
            "arithmetic": engine.arithmetic,
            "slots": args.slots,
            "threads": args.threads,
            "prompt": args.prompt,
            "chunk": args.chunk,
        }
        for name, measure in (("jitter", measure_jitter), ("flood", measure_flood), ("service", measure_service)):
            if args.only in (None, name):
                results[name] = measure(engine, args, rng)
        results["internal_errors"] = engine.stats()["internal_errors"]
    if args.plot and args.only is None:
        draw(args.plot, results)
    if args.json:
        print(json.dumps(results))
        return
    for name, row in results.items():
        short = {k: v for k, v in row.items() if not isinstance(v, list)} if isinstance(row, dict) else row
        print(f"{name}: {short}")


if __name__ == "__main__":
    main()
