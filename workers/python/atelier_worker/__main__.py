"""`python -m atelier_worker FILE… --server HOST:PORT`: serves the nodes of some files."""

import argparse
import importlib.util
import logging
import os
import pathlib
import signal
import sys
import threading

from atelier_worker.errors import Fatal
from atelier_worker.nodes import REGISTERED
from atelier_worker.worker import Worker


def load(path: str) -> None:
    """Runs a file, so that its nodes are known."""
    file = pathlib.Path(path).resolve()
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.exists():
        sys.exit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent))
    spec.loader.exec_module(module)


def main() -> int:
    """The command."""
    env = os.environ.get
    parser = argparse.ArgumentParser(prog="atelier_worker", description="Serves node types to atelier.")
    parser.add_argument("files", nargs="+", help="Python files with nodes")
    parser.add_argument("--server", default=env("ATELIER_WORKER_SERVER", "127.0.0.1:7788"), help="address of the kernel")
    parser.add_argument("--name", default=env("ATELIER_WORKER_NAME", "python"), help="name for people")
    parser.add_argument("--instance", default=env("ATELIER_WORKER_INSTANCE"), help="identity over restarts; one process at a time")
    parser.add_argument("--concurrency", type=int, default=8, help="invocations at once")
    parser.add_argument("--user", default=env("ATELIER_WORKER_USER", "1"), help="user whose types these are, with a secret")
    parser.add_argument("--secret-file", default=env("ATELIER_WORKER_SECRET_FILE"), help="file with the secret that signs identities")
    parser.add_argument("--verbose", action="store_true", help="log more")
    args = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.INFO, format="%(levelname)s %(message)s")
    for file in args.files:
        load(file)
    if not REGISTERED:
        sys.exit("the files have no nodes")
    secret = pathlib.Path(args.secret_file).read_text().strip() if args.secret_file else None
    worker = Worker(
        args.server, name=args.name, instance=args.instance, concurrency=args.concurrency, secret=secret, user=args.user
    )

    def ask(*_: object) -> None:
        if worker.stopping.is_set():
            os._exit(130)  # A second signal ends at once, whatever the nodes do.
        # In a thread: this one may be anywhere, with a lock in its hand.
        threading.Thread(target=worker.stop, daemon=True).start()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, ask)
    try:
        worker.run()
    except Fatal as error:
        print(f"atelier_worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
