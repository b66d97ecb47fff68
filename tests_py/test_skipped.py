"""scripts/skipped.py: what the test command says at its end."""

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "skipped.py"
CTEST = """<testsuite name="C++">
<testcase name="A.skipped" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] A.skipped
/a/b_test.cpp:12: Skipped
no fixtures

[  SKIPPED ] A.skipped (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.skipped
</system-out></testcase>
<testcase name="many" status="run"><system-out>[       OK ] A.first (3 ms)
/a/b_test.cpp:40: Skipped
no fixtures

[  SKIPPED ] A.second (0 ms)
/a/b_test.cpp:50: Skipped
no GPU
[  SKIPPED ] A.third (0 ms)
/a/b_test.cpp:60: Skipped
[gpu] no driver
[  SKIPPED ] A.with_a_bracket (0 ms)
[       OK ] A.fourth (3 ms)
</system-out></testcase>
<testcase name="seeds" status="run"><system-out>4 inputs</system-out></testcase>
<testcase name="broken" status="fail"><failure message="Failed"/></testcase>
</testsuite>"""
PYTEST = """<testsuites><testsuite name="pytest">
<testcase name="one"/><testcase name="two"><skipped type="pytest.skip" message="no fixtures">file:1</skipped></testcase>
<testcase name="a_file">
<skipped type="pytest.skip" message="collection skipped">('/a/test_b.py', 13, 'Skipped: no GPU')</skipped></testcase>
<testcase name="three"><error message="in a fixture"/></testcase>
</testsuite></testsuites>"""


def test_reasons_are_counted_over_both(tmp_path):
    (tmp_path / "c.xml").write_text(CTEST)
    (tmp_path / "p.xml").write_text(PYTEST)
    run = subprocess.run(
        [sys.executable, SCRIPT, f"C++={tmp_path}/c.xml", f"Python={tmp_path}/p.xml"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == [
        "    C++  Python  skipped because",
        "      2       1  no fixtures",
        "      1       1  no GPU",
        "      1          [gpu] no driver",
        "4 passed, 2 failed, 6 skipped",
    ]
