"""Validates frames of the socket, one JSON object a line on stdin, with the published message types.

`generation_complete` is not among them: it is the type that a reader of that age does not know, and must be refused.
"""

import json
import sys

import pydantic
from nodetool.workflows.types import ProcessingMessage

# Types that the published union has no model for.
UNKNOWN = {"generation_complete"}

adapter = pydantic.TypeAdapter(ProcessingMessage)
valid, refused, wrong = 0, 0, []
for line in sys.stdin:
    frame = json.loads(line)
    try:
        adapter.validate_python(frame)
        valid += 1
    except pydantic.ValidationError as error:
        if frame["type"] in UNKNOWN:
            refused += 1
        else:
            wrong.append(f"{frame}: {error}")
for text in wrong:
    print(text)
print(f"{valid} frames are valid, {refused} of an unknown type are refused, {len(wrong)} are wrong")
sys.exit(1 if wrong or not valid else 0)
