"""zinc-rt serve --ready-fd N: one line with the addresses, once requests are taken."""

import http.client
import os
import subprocess
import urllib.parse

import pytest

from server_process import PROGRAM


def status(address, path):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize("has_metrics", [False, True])
def test_the_line_has_the_addresses_and_the_descriptor_is_closed(tiny_model, has_metrics):
    reader, writer = os.pipe()
    more = ["--metrics-listen", "127.0.0.1:0"] if has_metrics else []
    command = [*PROGRAM, "serve", str(tiny_model), "--port", "0", "--state", "none", "--ready-fd", str(writer), *more]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[writer])
    os.close(writer)
    try:
        with open(reader) as ready:
            line, rest = ready.readline(), ready.read()  # the end of the file comes, though the server runs on
        assert rest == "" and line.endswith("\n") and process.poll() is None
        url, *others = line.split()
        assert url.startswith("http://127.0.0.1:") and status(url, "/v1/models") == 200
        assert [status(other, "/readyz") for other in others] == [200] * has_metrics
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_the_line_of_tls_says_https(tiny_model, tmp_path):
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout {key} -out {chain}".split(),
        check=True,
        capture_output=True,
    )
    reader, writer = os.pipe()
    command = [*PROGRAM, "serve", str(tiny_model), "--port", "0", "--state", "none", "--ready-fd", str(writer)]
    command += ["--tls-cert", str(chain), "--tls-key", str(key)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[writer])
    os.close(writer)
    try:
        with open(reader) as ready:
            assert ready.readline().startswith("https://127.0.0.1:")
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("mode", [None, os.O_RDONLY])
def test_a_descriptor_that_cannot_be_written_is_refused_at_once(mode):
    fd = None if mode is None else os.open(os.devnull, mode)
    number = 777 if fd is None else fd
    command = [*PROGRAM, "serve", "/no/such/file.gguf", "--ready-fd", str(number)]
    run = subprocess.run(command, capture_output=True, text=True, pass_fds=[] if fd is None else [fd], timeout=60)
    if fd is not None:
        os.close(fd)
    assert run.returncode != 0 and f"--ready-fd {number}" in run.stderr
    assert "open for writing wanted" in run.stderr
