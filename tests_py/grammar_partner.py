"""The grammar engine behind bench_grammar, the JSON-Schema-Test-Suite, and schemas made up at random."""

import json
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SDIST = "jsonschema==4.26.0"  # has the suite


def program():
    """bench_grammar: ZRT_BENCH_GRAMMAR, or the newest of the build folders."""
    named = os.environ.get("ZRT_BENCH_GRAMMAR")
    built = [pathlib.Path(named)] if named else list((ROOT / "build").glob("*/bench/bench_grammar"))
    if not built:
        pytest.skip("no bench_grammar; the C++ tests' build has it")
    return max(built, key=lambda path: path.stat().st_mtime)


class Partner:
    def __init__(self, vocabulary):
        self.process = subprocess.Popen(
            [program(), "partner", vocabulary], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()

    def _ask(self, command):
        self.process.stdin.write(command)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().rstrip("\n")

    def compile(self, schema, max_whitespace=8):
        """An empty text, or why not."""
        text = json.dumps(schema).encode()
        answer = self._ask(b"schema %d %d %s\n" % (len(text), max_whitespace, text))
        return "" if answer == "ok" else answer.removeprefix("error ")

    def mask(self):
        answer = self._ask(b"mask\n")
        assert answer.isdigit(), answer
        return self.process.stdout.read(int(answer))

    def token(self, number):
        return self._ask(b"token %d\n" % number) == "1"

    def fits(self, text):
        answer = self._ask(b"text %d %s\n" % (len(text), text))
        assert answer in ("0", "1"), answer
        return answer == "1"


def token_bytes(vocabulary):
    """Each token's bytes (none for one that is no text), and the numbers of those that end an answer."""
    run = subprocess.run([program(), "vocabulary", vocabulary], capture_output=True, text=True, check=True)
    lines = run.stdout.split("\n")[:-1]
    ends = [number for number, line in enumerate(lines) if line.endswith("end")]
    return [bytes.fromhex(line.removesuffix("end")) for line in lines], ends


def suite_folder():
    """The suite's tests of draft 2020-12, out of jsonschema's source archive. ZRT_JSON_SCHEMA_SUITE names another."""
    if named := os.environ.get("ZRT_JSON_SCHEMA_SUITE"):
        return pathlib.Path(named)
    kept = ROOT / ".cache" / "json_schema_suite"
    if not kept.is_dir():
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", SDIST]
        part = kept.with_suffix(".part")
        run = subprocess.run([*download, "--dest", part], capture_output=True)
        archives = list(part.glob("*.tar.gz")) if run.returncode == 0 else []
        if not archives:
            pytest.skip("no JSON-Schema-Test-Suite: pip cannot fetch " + SDIST)
        with tarfile.open(archives[0]) as archive:
            archive.extractall(kept, filter="data")
    return next(kept.glob("*/json/tests/draft2020-12"))


def suite(*parts):
    """(file, group) of the suite's files in a folder of it."""
    for path in sorted(suite_folder().joinpath(*parts).glob("*.json")):
        for group in json.loads(path.read_text()):
            yield path.stem, group


NAMES = ["name", "id", "age", "tags", "value", "items", "is_ok", "price", "naïve", "a", "b", "ab"]
VALUES = ["red", "green", "blue", "a b", "é", "x\ny", 1, 2, 30, True, None, -5]
# Without the dot: it leaves out more line ends here, as ECMA-262 says, than in llguidance.
PATTERNS = [
    *("^[a-z]{2,5}$", "^[A-Z][a-z]*-\\d+$", "^(foo|bar)+$", "^\\d{3}-\\d{4}$", "^[^@ ]+@[a-z]+$", "ab+c", "^x"),
]


def random_schema(random, depth=0):
    """Of the kind that tools and structured answers have: objects, lists, strings and numbers with bounds, enums."""

    def inner():
        return random_schema(random, depth + 1)

    def bounded_number():
        low = random.randint(-200, 500)
        return {"type": "integer", "minimum": low, "maximum": low + random.randint(0, 1000)}

    def bounded_string():
        least = random.randint(0, 5)
        return {"type": "string", "minLength": least, "maxLength": least + random.randint(0, 40)}

    def an_object():
        names = random.sample(NAMES, random.randint(0, 5))
        schema = {"type": "object", "properties": {name: inner() for name in names}}
        if random.random() < 0.7:
            schema["required"] = [name for name in names if random.random() < 0.6]
        if random.random() < 0.6:
            schema["additionalProperties"] = False
        elif random.random() < 0.3:
            schema["additionalProperties"] = inner()
        return schema

    def a_list():
        schema = {"type": "array", "items": inner()}
        if random.random() < 0.5:
            schema["minItems"] = random.randint(0, 2)
        if random.random() < 0.5:
            schema["maxItems"] = random.randint(2, 4)
        return schema

    simple = [
        lambda: {"type": "string"},
        lambda: {"type": "integer"},
        lambda: {"type": "number"},
        lambda: {"type": random.choice(["boolean", "null"])},
        lambda: {"enum": random.sample(VALUES, random.randint(1, 5))},
        bounded_number,
        bounded_string,
        lambda: {"type": "string", "pattern": random.choice(PATTERNS)},
        lambda: {"const": random.choice(["fixed", 12, True, 'q"t'])},
    ]
    nested = [
        *[an_object] * 4,
        a_list,
        lambda: {"anyOf": [inner() for _ in range(random.randint(1, 3))]},
        lambda: {"type": ["object", "null"], "properties": {"x": inner()}, "required": ["x"]},
    ]
    return random.choice(simple + nested if depth < 4 else simple)()
