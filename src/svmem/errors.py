"""Exceptions of svmem. All are raised before anything changes."""

__all__ = ["CertificateError", "FileRefused", "InvalidInput", "NotFitted", "NotFound", "SolverError", "SvmemError"]


class SvmemError(Exception):
    """Parent of every exception that svmem raises on purpose."""


class InvalidInput(SvmemError, ValueError):
    """An argument breaks a stated condition; the message says which, and what came."""


class NotFound(SvmemError, KeyError):
    """An id or owner that the memory does not hold."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class NotFitted(SvmemError, ValueError, AttributeError):
    """A question to a memory or estimator that holds no record yet."""


class SolverError(SvmemError):
    """The solver could not prove its answer; the message says what to change."""


class FileRefused(SvmemError):
    """A file that is not what it should be: foreign, damaged, or written by a newer version."""


class CertificateError(SvmemError):
    """A certificate that the records do not bear out."""
