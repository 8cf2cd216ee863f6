"""Writes the message types of the protocol into `atelier_worker/_proto`, from the contracts in `proto/`.

`python workers/python/generate.py` writes them, `--check` says whether they are fresh. Needs grpcio-tools.
"""

import pathlib
import re
import sys
import tempfile

from grpc_tools import protoc

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
TARGET = HERE / "atelier_worker" / "_proto"
FILES = [
    "atelier/common/v1/value.proto",
    "atelier/tracker/v1/generation.proto",
    "atelier/kernel/v1/event.proto",
    "atelier/kernel/v1/node_service.proto",
    "atelier/kernel/v1/worker_service.proto",
]


def generated() -> dict[str, str]:
    """Module by path, with imports that name this package."""
    with tempfile.TemporaryDirectory() as folder:
        wellknown = pathlib.Path(protoc.__file__).parent / "_proto"
        code = protoc.main(["protoc", f"-I{PROTO}", f"-I{wellknown}", f"--python_out={folder}", *FILES])
        if code:
            sys.exit(code)
        modules = {}
        for file in sorted(pathlib.Path(folder).rglob("*_pb2.py")):
            text = re.sub(r"^from atelier\.", "from atelier_worker._proto.atelier.", file.read_text(), flags=re.M)
            modules[file.relative_to(folder).as_posix()] = text
        return modules


def main() -> int:
    modules = generated()
    if "--check" in sys.argv:
        stale = [name for name, text in modules.items() if not (TARGET / name).exists() or (TARGET / name).read_text() != text]
        print("\n".join(f"{name} is stale: run python workers/python/generate.py" for name in stale) or "fresh")
        return 1 if stale else 0
    for name, text in modules.items():
        path = TARGET / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.parents:
            (folder / "__init__.py").touch()
            if folder == TARGET:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
