"""How many tests passed, failed and were skipped, and why: a table of JUnit files, those of ctest and of pytest.

python3 scripts/skipped.py C++=build/release.ctest.xml Python=build/pytest.xml
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# Lines of GoogleTest; in the summary at its end names stand without a time.
PASSED = re.compile(r"^\[       OK \] .* \(\d+ ms\)$", re.MULTILINE)
SKIPPED = re.compile(r"^\[  SKIPPED \] .* \(\d+ ms\)$", re.MULTILINE)
# The text of GTEST_SKIP() stands between the place and the next place or mark, such as [ RUN      ]. It may begin with
# a bracket itself, as errors do.
REASON = re.compile(r": Skipped\n(.*?)\n*(?=^\[[ =-]|^\S+:\d+: |\Z)", re.MULTILINE | re.DOTALL)


def outcomes(case):
    """(passed, failed, reasons of the skipped) of a test case, which may be a run of many tests of GoogleTest."""
    if case.find("failure") is not None or case.find("error") is not None:
        return 0, 1, []
    output = case.findtext("system-out") or ""
    n_skipped = len(SKIPPED.findall(output))
    if n_skipped > 0:
        reasons = [text.strip().replace("\n", " ") or "no reason given" for text in REASON.findall(output)]
        return len(PASSED.findall(output)), 0, (reasons + ["no reason given"] * n_skipped)[:n_skipped]
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        message = (skipped.get("message") if skipped is not None else None) or "not run"
        if message == "collection skipped":  # a file that skipped itself: ('path', line, 'Skipped: why')
            message = re.sub(r"^.*Skipped: |['\"]\)$", "", skipped.text or message, flags=re.DOTALL)
        return 0, 0, [" ".join(message.split())]
    return max(1, len(PASSED.findall(output))), 0, []


def summary(files):
    """Lines of text for {name: path of a JUnit file}."""
    passed = failed = 0
    counts = collections.defaultdict(collections.Counter)
    for name, path in files.items():
        for case in ElementTree.parse(path).iter("testcase"):
            ok, bad, reasons = outcomes(case)
            passed += ok
            failed += bad
            for reason in reasons:
                counts[reason][name] += 1
    lines = []
    if counts:
        lines.append(" ".join(f"{name:>7}" for name in files) + "  skipped because")
    for reason, count in sorted(counts.items(), key=lambda item: -item[1].total()):
        lines.append(" ".join(f"{count[name] or '':>7}" for name in files) + f"  {reason}")
    n_skipped = sum(count.total() for count in counts.values())
    return [*lines, f"{passed} passed, {failed} failed, {n_skipped} skipped"]


if __name__ == "__main__":
    print("\n".join(summary(dict(argument.split("=", 1) for argument in sys.argv[1:]))))
