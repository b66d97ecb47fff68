"""What answers by a JSON schema cost: tokens a second with one and without, by turns, against a server that runs.

    python bench/structured.py --url http://127.0.0.1:8080 --streams 1 16 64
    python bench/structured.py --url http://127.0.0.1:8080 --hostile    # what schemas made to stall do to a neighbour

Any server that takes OpenAI's response_format and `ignore_eos` will do (zinc-rt serve, llama-server). All requests of a
measurement are sent at once and read whole; none ends before --tokens, since the schema wants a long list and the
others ignore the end. With --hostile one stream without a schema is read piece by piece, alone, beside two clients
that send short requests all the time, and beside two that send hostile schemas with them; its gaps are
compared. Prints Markdown; --json FILE writes the numbers. Wants Python alone.
"""

import argparse
import http.client
import itertools
import json
import pathlib
import statistics
import threading
import time
import urllib.parse

STRING = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "title": STRING,
        "words": {"type": "array", "items": STRING, "minItems": 400},
        "count": {"type": "integer"},
    },
    "required": ["title", "words", "count"],
    "additionalProperties": False,
}
PROMPT = "Write about number {}: a title, a long list of words that belong to it, and how many there are."


def nested(depth):
    inner = STRING
    for i in range(depth):
        inner = {"type": "object", "properties": {f"p{i}": inner}, "required": [f"p{i}"]}
    return inner


# Each took other engines from tenths of a second to minutes; a server may refuse them.
HOSTILE = {
    "a repeat of repeats": {"type": "string", "pattern": "^((a{0,50}b?){0,50}c?){0,50}$"},
    "a far look ahead": {"type": "string", "pattern": "^.*a.{20}$"},
    "5,000 optional properties": {"type": "object", "properties": {f"property_{i}": STRING for i in range(5000)}},
    "anyOf of 4,096": {"anyOf": [{"type": "string", "pattern": f"^[a-z]*{i}[a-z]*$"} for i in range(4096)]},
    "an enum of 10,000": {"enum": [f"value {i} of many" for i in range(10000)]},
    "60 levels": nested(60),
    "long strings": {"type": "array", "items": {"type": "string", "minLength": 500, "maxLength": 5000}},
    "a list of ambiguous parts": {"type": "array", "items": {"anyOf": [{}, {"type": "object"}, {"type": "array"}]}},
}


class Server:
    def __init__(self, url, key, model):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self.model = model

    def open(self, fields):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=600)
        body = {**({"model": self.model} if self.model else {}), **fields}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), self.headers)
        return connection, connection.getresponse()

    def ask(self, fields):
        """The status and the tokens of an answer."""
        connection, response = self.open(fields)
        data = response.read()
        connection.close()
        if response.status != 200:
            return response.status, 0
        return 200, json.loads(data)["usage"]["completion_tokens"]

    def gaps(self, fields):
        """Seconds between the pieces of a stream."""
        connection, response = self.open({**fields, "stream": True})
        if response.status != 200:
            raise SystemExit(f"status {response.status}: {response.read(500).decode(errors='replace')}")
        times = [time.perf_counter() for line in response if line.startswith(b"data: {")]
        connection.close()
        return [b - a for a, b in itertools.pairwise(times[1:])]


def request_of(number, tokens, schema):
    fields = {"messages": [{"role": "user", "content": PROMPT.format(number)}], "max_tokens": tokens, "seed": number}
    fields |= {"temperature": 0.8, "ignore_eos": schema is None}
    if schema is not None:
        fields["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return fields


def tokens_per_s(server, n_streams, tokens, schema):
    results = [None] * n_streams

    def run(i):
        results[i] = server.ask(request_of(i, tokens, schema))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n_streams)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    if any(status != 200 for status, _ in results):
        raise SystemExit(f"statuses {sorted({status for status, _ in results})}")
    if schema is not None and any(n < tokens for _, n in results):
        raise SystemExit("an answer by the schema ended before --tokens; its list is too short")
    return sum(n for _, n in results) / took


def compare(server, options):
    schema = json.loads(options.schema.read_text()) if options.schema else SCHEMA
    rows = []
    for n in options.streams:
        with_schema, without = [], []
        for schema_of_turn, to in [(schema, []), (None, [])] + [
            (schema, with_schema),
            (None, without),
        ] * options.rounds:
            to.append(tokens_per_s(server, n, options.tokens, schema_of_turn))
        rows.append({"streams": n, "with": with_schema, "without": without})
    print("| streams | with the schema, tokens/s | without | ratio of medians |\n|---|---|---|---|")
    for row in rows:
        a, b = statistics.median(row["with"]), statistics.median(row["without"])
        print(f"| {row['streams']} | {a:,.1f} | {b:,.1f} | {a / b:.3f} |")
    return rows


def quantile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))]


def gaps_beside(server, others, schemas, number, options, statuses):
    """The neighbour's gaps while two clients send requests by these schemas, one after the other."""
    over = threading.Event()
    turns = itertools.cycle(schemas.items())

    def send():
        while not over.is_set():
            name, schema = next(turns)
            statuses.setdefault(name, set()).add(others.ask(request_of(0, 16, schema))[0])

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    gaps = server.gaps(request_of(number, options.tokens, None))
    over.set()
    for thread in threads:
        thread.join()
    return gaps


def beside_hostile(server, others, options):
    gaps = {"alone": [], "beside two clients without schemas": [], "beside two with hostile ones": []}
    alone, free, hostile = gaps.values()
    statuses = {}
    for number in range(options.rounds):
        alone += server.gaps(request_of(number, options.tokens, None))
        free += gaps_beside(server, others, {"no schema": None}, number, options, {})
        hostile += gaps_beside(server, others, HOSTILE, number, options, statuses)
    print("| gap of the neighbour, ms | p50 | p90 | p99 | most |\n|---|---|---|---|---|")
    for name, all_of in gaps.items():
        print(f"| {name} |", " | ".join(f"{1e3 * quantile(all_of, p):.2f}" for p in (0.5, 0.9, 0.99, 1)), "|")
    ratios = [f"{quantile(hostile, p) / quantile(free, p):.2f}" for p in (0.5, 0.9, 0.99)]
    print(f"\nHostile over none: p50 {ratios[0]}, p90 {ratios[1]}, p99 {ratios[2]}. Statuses:")
    for name, seen in sorted(statuses.items()):
        print(f"- {name}: {', '.join(map(str, sorted(seen)))}")
    return {"gaps": gaps, "statuses": {name: sorted(seen) for name, seen in statuses.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--api-key")
    parser.add_argument("--model", help="its name, where the server wants one")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--tokens", type=int, default=200, help="of each answer")
    parser.add_argument("--rounds", type=int, default=3, help="after one that is thrown away")
    parser.add_argument("--schema", type=pathlib.Path, help="a file; answers by it must be longer than --tokens")
    parser.add_argument("--hostile", action="store_true", help="measure a neighbour's gaps instead")
    parser.add_argument("--hostile-key", help="the key that hostile schemas come with; else --api-key")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    server = Server(options.url, options.api_key, options.model)
    if options.hostile:
        hostile = Server(options.url, options.hostile_key or options.api_key, options.model)
        result = beside_hostile(server, hostile, options)
    else:
        result = compare(server, options)
    if options.json:
        options.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
