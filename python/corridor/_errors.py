"""Exceptions of the package. Each is also a subclass of the matching built-in exception."""


class Error(Exception):
    """Base class of all errors of Corridor. ``may_retry``: a retry may succeed."""

    may_retry: bool = False

    def __str__(self) -> str:
        # KeyError would quote the message.
        return Exception.__str__(self)


class InternalError(Error, RuntimeError):
    """A state that should not occur."""


class InvalidError(Error, ValueError):
    """Invalid request: a bad selection or bad parameters."""


class NotFoundError(Error, LookupError):
    """No data set, array or operation of this name."""


class MissingFileError(NotFoundError, FileNotFoundError):
    """No such file or folder on this machine."""


class MissingGroupError(NotFoundError, FileNotFoundError):
    """No such group in the data set."""


class CorruptError(Error, ValueError):
    """The bytes violate the file format or the protocol."""


class UnsupportedError(Error, NotImplementedError):
    """Not supported by this version."""


class DeniedError(Error, PermissionError):
    """Token missing, wrong, or without the permission."""


class StaleError(Error, RuntimeError):
    """The data changed since they were described; open them again."""


class TooLargeError(Error, MemoryError):
    """The request exceeds a limit of memory, size or count."""


class WithdrawnError(Error, RuntimeError):
    """The request was cancelled."""


class UnreachableError(Error, ConnectionError):
    """The server cannot be reached, or the connection broke."""


class TimedOutError(Error, TimeoutError):
    """The timeout expired."""


class StorageError(Error, OSError):
    """Error of the operating system: disk, permissions."""


class BusyError(Error, RuntimeError):
    """The server is busy; try again later."""


# The numbers of `array::ErrorKind`; stable across versions.
_OF_CODE: dict[int, type[Error]] = {
    1: InternalError,
    2: InvalidError,
    3: NotFoundError,
    4: CorruptError,
    5: UnsupportedError,
    6: DeniedError,
    7: StaleError,
    8: TooLargeError,
    9: WithdrawnError,
    10: UnreachableError,
    11: TimedOutError,
    12: StorageError,
    13: BusyError,
}


def make(code: int, sentence: str, may_retry: bool) -> Error:
    """Creates the exception for an error of the native module."""
    error = _OF_CODE.get(code, InternalError)(sentence)
    error.may_retry = may_retry
    return error
