"""What can go wrong, as exceptions. Each is also the built-in exception that Python people would expect."""


class Error(Exception):
    """Any error of Corridor. ``may_retry``: doing the same again may help."""

    may_retry: bool = False

    def __str__(self) -> str:
        # KeyError would quote the sentence.
        return Exception.__str__(self)


class InternalError(Error, RuntimeError):
    """A state that should not occur."""


class InvalidError(Error, ValueError):
    """The request itself is wrong: a bad selection, bad parameters."""


class NotFoundError(Error, LookupError):
    """The named thing does not exist."""


class MissingFileError(NotFoundError, FileNotFoundError):
    """There is no such file or folder on this machine."""


class MissingGroupError(NotFoundError, FileNotFoundError):
    """There is no such group in the data set."""


class CorruptError(Error, ValueError):
    """The bytes found are not what the format or protocol promises."""


class UnsupportedError(Error, NotImplementedError):
    """Understood, but not supported by this version."""


class DeniedError(Error, PermissionError):
    """Token missing, wrong, or not allowed to do this."""


class StaleError(Error, RuntimeError):
    """The data changed since they were described; open them again."""


class TooLargeError(Error, MemoryError):
    """A limit of memory, size or count would be exceeded."""


class WithdrawnError(Error, RuntimeError):
    """The request was withdrawn."""


class UnreachableError(Error, ConnectionError):
    """The other side cannot be reached, or the connection broke."""


class TimedOutError(Error, TimeoutError):
    """The deadline passed."""


class StorageError(Error, OSError):
    """The operating system refused: disk, permissions."""


class BusyError(Error, RuntimeError):
    """The other side is busy; ask again later."""


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
    """The exception for an error of the native module."""
    error = _OF_CODE.get(code, InternalError)(sentence)
    error.may_retry = may_retry
    return error
