"""`python -m zinc_rt.ray model.gguf --replicas 2 -- --max-slots 16`: what is behind `--` goes to `zinc-rt serve`."""

from __future__ import annotations

import argparse
import ipaddress
import os
import signal
import sys
import threading
from collections.abc import Sequence

from .. import errors


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m zinc_rt.ray",
        description="several servers of a model behind Ray Serve, equal prefixes to one of them",
        epilog="What stands behind -- are options of each `zinc-rt serve`, as in: -- --config zinc.toml --max-slots 16",
    )
    p.add_argument("model", nargs="?", help="as `zinc-rt serve` takes it; may be left out with --config behind --")
    p.add_argument("--replicas", type=int, default=1, help="servers (%(default)s)")
    p.add_argument("--gpus", type=float, default=0, help="GPUs that Ray gives to each (%(default)s)")
    p.add_argument("--cpus", type=float, default=0.1, help="processors that Ray counts for each (%(default)s)")
    p.add_argument("--ingresses", type=int, default=1, help="processes that read requests (%(default)s)")
    p.add_argument("--host", default="127.0.0.1", help="where Serve listens, unless it runs already (%(default)s)")
    p.add_argument("--port", type=int, default=8000, help="(%(default)s)")
    p.add_argument("--name", default="zinc_rt", help="of the application (%(default)s)")
    p.add_argument("--route-prefix", default="/", help="the paths begin with it (%(default)s)")
    p.add_argument(
        "--address", help="a Ray cluster that runs (auto: this machine's); else one is started, which ends with this"
    )
    return p


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def fleet(options: argparse.Namespace, more: Sequence[str]):
    # If Serve is running already, its own address is used, which other machines may reach.
    may_be_open = "loopback" if is_loopback(options.host) and not options.address else False
    # Keys in a configuration file are read only when a replica starts.
    names_key = any(each.split("=")[0] in ("--api-key", "--config") for each in more) or "ZINC_RT_API_KEY" in os.environ
    if not may_be_open and not names_key:
        where = f"--address {options.address}" if options.address else f"--host {options.host}"
        raise errors.InvalidArgument(f"[ray] {where}: others may reach it, so a key is wanted")
    from . import app

    return app(
        options.model,
        replicas=options.replicas,
        arguments=more,
        ingresses=options.ingresses,
        num_cpus=options.cpus,
        num_gpus=options.gpus,
        may_be_open=may_be_open,
    )


def main(arguments: Sequence[str]) -> int:
    own, more = list(arguments), []
    if "--" in own:
        at = own.index("--")
        own, more = own[:at], own[at + 1 :]
    options = parser().parse_args(own)
    try:
        application = fleet(options, more)
    except (ImportError, errors.ZincError) as error:
        print(f"zinc_rt.ray: {error}", file=sys.stderr)
        return 1
    import ray
    from ray import serve

    over = threading.Event()
    ray.init(options.address, **({} if options.address else {"include_dashboard": False}))
    # SIGTERM ends the program in the same way as Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        serve.start(http_options={"host": options.host, "port": options.port})
        serve.run(application, name=options.name, route_prefix=options.route_prefix)
    except RuntimeError as error:
        print(f"zinc_rt.ray: {error}", file=sys.stderr)
        return 1
    else:
        at = f"Serve, at {options.route_prefix}," if options.address else f"http://{options.host}:{options.port}"
        print(f"{at} has {options.replicas} replicas", flush=True)
        over.wait()
        return 0
    finally:
        serve.delete(options.name) if options.address else serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
