"""What can go wrong, by what it means for the run."""


class NodeFailure(Exception):
    """The node failed. `code` is machine-readable; `lost` says what is lost: `node` or only the `item`."""

    def __init__(self, message: str, *, code: str = "", lost: str = "node"):
        super().__init__(message)
        self.code, self.lost = code, lost


class Refused(NodeFailure):
    """The content was refused: inside of an iteration only the item is lost."""

    def __init__(self, message: str, *, code: str = ""):
        super().__init__(message, code=code, lost="refused")


class Cancelled(BaseException):
    """The run was cancelled. Raised where a node yields or waits; not an `Exception`, so that nobody swallows it."""


class MediaError(Exception):
    """The bytes of a reference cannot be had."""


class Fatal(Exception):
    """The kernel refused the worker for a reason that does not pass."""
