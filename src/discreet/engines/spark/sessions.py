"""Spark sessions: started, connected to or given. They are silent, have fixed settings, and are interrupted on
timeout.
"""

from __future__ import annotations

import gc
import itertools
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from discreet.errors import DiscreetError, EngineFailed, InvalidArgument
from discreet.exact.randomness import random_integer
from discreet.extras import need

P = ParamSpec("P")
T = TypeVar("T")

CONNECT = "sc://"
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.adaptive.enabled": "true",
    # a file that cannot be read must fail, and no value may decide the type of a column
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # old dates would be an error
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
}
"""What decides the meaning of a statement; the rest is the owner's."""
_FASTER = {
    # most pairs of a person and a group appear once: partial aggregation only adds work
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # another sort before the one that is needed
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",
}
_PLAIN = {"spark.app.name": "discreet", "spark.ui.showConsoleProgress": "false"}
_SILENT = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "true",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).parent / 'quiet_log4j2.properties'}",
}
"""For a session that is started here: nothing is shown of what it does."""
_LOGGERS = (
    *("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging"),
    *("py4j", "py4j.clientserver", "py4j.java_gateway", "py4j.finalizer"),
)
_CLOSED = "Spark cannot be started or reached. Check that Java 17 is installed, and correct master of [engine]."
_numbers = itertools.count()


def new_name() -> str:
    """A name that no other process on the same cluster uses or can guess."""
    return f"discreet_{random_integer(120):x}_{next(_numbers)}"


def attempt(
    work: Callable[[], Any], said: str, error: type[DiscreetError] = EngineFailed, *, code: str = "engine-failed"
) -> Any:
    """Run a call to Spark. If it fails, only `said` is passed on."""
    try:
        return work()
    except (InvalidArgument, EngineFailed):
        raise
    except Exception:
        pass
    raise error(said, code=code)  # outside of the handler: no context, which might quote values


def session_for(master: str | None, config: Mapping[str, str]) -> Any:
    """The session of this process with this master, started if there is none. Or a session of Spark Connect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning about supported pandas versions
        sql = need("pyspark.sql", "spark", "The engine Spark")
        if master is not None and master.startswith(CONNECT):
            opened = attempt(
                sql.SparkSession.builder.remote(master).create, _CLOSED, InvalidArgument, code="engine-unreachable"
            )
            return _let_go(opened)
        context = need("pyspark", "spark", "The engine Spark").SparkContext._active_spark_context
        running = sql.SparkSession.getActiveSession() if context is None else sql.SparkSession(context)
        if running is None:
            if (master or "local").startswith("local"):
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors need this package for models
            builder = sql.SparkSession.builder.master(master or "local[*]")
            for key, value in {**_PLAIN, **config, **_SILENT}.items():
                builder = builder.config(key, value)
            return attempt(builder.getOrCreate, _CLOSED, InvalidArgument, code="engine-unreachable")
    if is_remote(running) or master not in (None, running.sparkContext.master):
        raise InvalidArgument(
            "Another session of Spark runs in this process. Pass it with spark=, or stop it first.",
            code="spark-session",
        )
    return running


def is_remote(session: Any) -> bool:
    """Whether a session uses Spark Connect, so that its JVM is elsewhere."""
    return ".connect." in type(session).__module__


def own_session(session: Any) -> Any:
    """A separate SQL session on the same cluster. Settings of the owner's sessions do not affect it."""
    if not hasattr(session, "newSession"):
        raise InvalidArgument(
            'This session of Spark Connect cannot make another. Write master = "sc://…" instead.', code="spark-session"
        )
    own = session.newSession()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning about deprecated settings
        for key, value in (_SETTINGS | _FASTER).items():
            own.conf.set(key, value)
    return _let_go(own) if is_remote(own) else own


def _let_go(remote: Any) -> Any:
    """Close it at the end of the process, before its threads end. Otherwise its channel would wait for them forever."""
    weakref.finalize(remote, remote.client.close)
    return remote


def frees_frames(run: Callable[P, T]) -> Callable[P, T]:
    """Let the JVM free what it holds for the frames of a run, once they are not used. Py4j's proxies are in cycles:
    until Python searched for garbage, the tables that statements broadcast would fill the JVM.
    """

    @wraps(run)
    def freed(*given: P.args, **named: P.kwargs) -> T:
        try:
            return run(*given, **named)
        finally:
            gc.collect(1)

    return freed


@contextmanager
def in_time(session: Any, timeout: int | None) -> Iterator[None]:
    """Interrupt whatever runs longer than the timeout."""
    if timeout is None:
        yield
        return
    tag, done = new_name(), threading.Event()
    if is_remote(session):
        begin, stop, end = session.addTag, session.interruptTag, session.removeTag
    else:  # a session's own interruptTag affects only what its thread started
        context = session.sparkContext
        begin, stop, end = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag

    def interrupt() -> None:
        wait: float = timeout
        while not done.wait(wait):  # repeatedly: a job that is still being planned starts later
            stop(tag)
            wait = 1

    begin(tag)
    watch = threading.Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()
        end(tag)


class Silence:
    """Spark's loggers, in the JVM and in Python, are silent while a database is open on a session.

    A task that fails late is logged after its question was answered, so they stay silent between questions.
    """

    _lock = threading.Lock()
    _open = 0
    _before: tuple[dict[str, bool], list[tuple[Any, Any]]] = ({}, [])

    @classmethod
    def begin(cls, session: Any) -> None:
        """One more database is open."""
        with cls._lock:
            if cls._open == 0:
                python = {name: _logger(name).disabled for name in _LOGGERS}
                cls._before = python, [] if is_remote(session) else _jvm_levels(session)
            cls._open += 1
            for name in _LOGGERS:
                _logger(name).disabled = True
            if not is_remote(session):
                _set_levels(session, [(logger, None) for logger, _ in _jvm_levels(session)])

    @classmethod
    def end(cls, session: Any) -> None:
        """One database was closed. After the last one, the loggers are restored."""
        with cls._lock:
            cls._open -= 1
            if cls._open == 0:
                python, java = cls._before
                for name, disabled in python.items():
                    _logger(name).disabled = disabled
                _set_levels(session, java)


def _logger(name: str) -> logging.Logger:
    """A logger of the kind that Spark would make under this name: it cannot use another."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before 4.0
        return logging.getLogger(name)
    made: logging.Logger = PySparkLogger.getLogger(name) if name.endswith("Logger") else logging.getLogger(name)
    return made


def _jvm_levels(session: Any) -> list[tuple[Any, Any]]:
    loggers = _context(session).getConfiguration().getLoggers()
    return [(loggers[name], loggers[name].getLevel()) for name in loggers]


def _set_levels(session: Any, levels: list[tuple[Any, Any]]) -> None:
    if not levels:
        return
    off = session._jvm.org.apache.logging.log4j.Level.OFF
    for logger, level in levels:
        logger.setLevel(off if level is None else level)
    _context(session).updateLoggers()


def _context(session: Any) -> Any:
    return session._jvm.org.apache.logging.log4j.LogManager.getContext(False)
