"""Files stay short: median at most 120 lines, 95th percentile at most 350. Prints the longest (also as a script)."""

import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["cpp", "kernels", "tests_cpp", "python", "tests_py"]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py", ".pyi"}
MOST_MEDIAN, MOST_95TH = 120, 350


def sizes(root):
    """(lines, path) of each source file, the longest first. Pages and what builds them (node_modules) are not ours."""
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.suffix in SUFFIXES and path.is_file() and "node_modules" not in path.parts:
                found.append((path.read_bytes().count(b"\n"), str(path.relative_to(root))))
    return sorted(found, reverse=True)


def percentile_95(lines):
    """The least number that 95 of 100 files do not exceed."""
    return sorted(lines)[-(-len(lines) * 95 // 100) - 1]


def report(files):
    lines = [n for n, _ in files]
    head = (
        f"{len(lines)} files: median {statistics.median(lines):g} lines (at most {MOST_MEDIAN}), "
        f"95th percentile {percentile_95(lines)} (at most {MOST_95TH}), {sum(n > MOST_95TH for n in lines)} over it"
    )
    return "\n".join([head, *(f"{n:5} {path}" for n, path in files[:25])])


def test_files_are_short():
    files = sizes(ROOT)
    lines = [n for n, _ in files]
    text = report(files)
    print(text)
    assert len(files) > 500, text
    assert statistics.median(lines) <= MOST_MEDIAN, text
    assert percentile_95(lines) <= MOST_95TH, text


def test_the_measures():
    assert percentile_95(list(range(1, 101))) == 95
    assert percentile_95([1] * 19 + [1000]) == 1
    assert percentile_95([1] * 18 + [1000] * 2) == 1000


if __name__ == "__main__":
    print(report(sizes(ROOT)))
