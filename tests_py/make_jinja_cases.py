"""Writes tests_cpp/jinja/data/jinja_cases.jsonl: templates, contexts, and what Python's jinja2 makes of them.

Usage: python tests_py/make_jinja_cases.py tests_cpp/jinja/data/jinja_cases.jsonl   (needs jinja2 3.1)
"""

import importlib
import json
import sys

from jinja_cases import CASES, G
from jinja_oracle import render

# In the order of the file.
for part in ("syntax", "filters", "statements", "errors"):
    importlib.import_module(f"jinja_cases_{part}")
ERRORS = sys.modules["jinja_cases_errors"].ERRORS


def main() -> None:
    used = {}
    out = []
    n_errors = 0
    for template, extra in CASES:
        context = {**G, **extra}
        try:
            result = {"expected": render(template, context)}
            result["expected"].encode()
        except UnicodeEncodeError:
            continue
        except Exception as e:
            n_errors += 1
            result = {"error": True, "message": f"{type(e).__name__}: {e}"[:200]}
        if template in used:
            continue
        used[template] = True
        # The shared context is the first line's; only what differs is repeated.
        out.append({"template": template, **({"context": extra} if extra else {}), **result})
    with open(sys.argv[1], "w") as file:
        file.write(json.dumps({"context": G}, ensure_ascii=False) + "\n")
        for case in out:
            file.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(f"{len(out)} cases, {n_errors} of them errors")
    for case in out:
        expected_error = case["template"] in ERRORS.splitlines()
        if expected_error != case.get("error", False):
            print("unplanned:", case["template"][:150], "->", case.get("message", case.get("expected"))[:200])


main()
