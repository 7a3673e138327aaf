"""Questions of one server: answered once, by the job that was read once, or worked on for later.

Question, sources --answer--> Answered (text, ETag);  what takes long --> ID of a work
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from driple.errors import ConfigError, DripleError
from driple.web.children import Children
from driple.web.fingerprint import etag_of
from driple.web.job_store import BoundedStore, JobStore
from driple.web.limits import Limits
from driple.web.metrics import Metrics
from driple.web.questions import Question
from driple.web.refusals import busy
from driple.web.sources import RequestJob, served
from driple.web.work import WorkStore

if TYPE_CHECKING:
    from driple.api.results import Result

__all__ = ["Answered", "Service"]

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer.

    Attributes:
        text: JSON, or a page.
        etag: of what it depends on.
    """

    text: bytes
    etag: str


class Service:
    """All that one server keeps, and the questions that it answers.

    Args:
        limits: of the server.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.metrics = Metrics()
        self.children = Children(limits)
        self.jobs = JobStore(limits, self.children)
        self.work = WorkStore(limits)
        self.sources: BoundedStore[RequestJob] = BoundedStore(
            limits.jobs_kept_bytes, limits.jobs_kept
        )
        self._answers: BoundedStore[bytes] = BoundedStore(limits.answers_kept_bytes)
        self._running: dict[str, asyncio.Future[Answered]] = {}
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="question")
        # Of their own, so that no short question waits behind them.
        self._long_threads = ThreadPoolExecutor(limits.long, thread_name_prefix="long")
        self._num_waiting = 0

    def close(self) -> None:
        """End all work."""
        for threads in (self._threads, self._long_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self.children.end()

    def etag(self, question: Question, sources: Sequence[RequestJob], form: str = "json") -> str:
        """The ETag of an answer that need not be there."""
        return etag_of(form, question.canonical, *(one.digest for one in sources))

    def check(self, question: Question, sources: Sequence[RequestJob]) -> None:
        """Refuse more than one request may ask, and what needs no reading.

        Raises:
            DripleError: what.
        """
        settings = question.settings
        clusters = len(settings or [None])
        if len(sources) * clusters > self.limits.predictions:
            raise ConfigError(
                f"{len(sources)} jobs on {clusters} clusters are {len(sources) * clusters} "
                f"predictions, at most {self.limits.predictions} are made at once"
            )

    def answer(self, question: Question, sources: Sequence[RequestJob]) -> asyncio.Future[Answered]:
        """The JSON answer, which may be there already, or is shared with who asked the same.

        Raises:
            Refusal: too many questions wait.
        """
        etag = self.etag(question, sources)
        is_long = question.is_long  # answered in a child, so that its time has a limit

        def text() -> bytes:
            if is_long:
                return self.children.ask(question, sources).encode() + b"\n"
            return self.in_context(sources, question.text).encode() + b"\n"

        return self.once(etag, text, is_long=is_long)

    def once(
        self, etag: str, make: Callable[[], bytes], *, is_long: bool = False
    ) -> asyncio.Future[Answered]:
        """What a function makes for an ETag, made once.

        Args:
            etag: of what is made.
            make: makes it.
            is_long: whether it may take minutes.

        Raises:
            Refusal: too many questions wait.
        """
        loop = asyncio.get_running_loop()
        kept = self._answers.get(etag)
        if kept is not None:
            done: asyncio.Future[Answered] = loop.create_future()
            done.set_result(Answered(kept, etag))
            return done
        if etag in self._running:
            return self._running[etag]
        if self._num_waiting >= self.limits.waiting:
            raise busy(f"{self._num_waiting} questions wait")

        def run() -> Answered:
            body = make()
            self._answers.put(etag, body, len(body))
            return Answered(body, etag)

        self._num_waiting += 1
        threads = self._long_threads if is_long else self._threads
        future = loop.run_in_executor(threads, copy_context().run, run)
        self._running[etag] = future
        future.add_done_callback(lambda done: self._ended(etag, done))
        return future

    def _ended(self, etag: str, done: asyncio.Future[Answered]) -> None:
        self._num_waiting -= 1
        self._running.pop(etag, None)
        if not done.cancelled():
            done.exception()

    def in_context(
        self, sources: Sequence[RequestJob], ask: Callable[[Sequence[str]], _Value]
    ) -> _Value:
        """What a question gives for the texts of sources, whose jobs are read here."""
        known = {one.text: one for one in sources}
        with served(known, self.jobs.reader(known)):
            return ask(list(known))

    def read_ahead(self, question: Question, source: RequestJob) -> None:
        """Read the job at half and at four times its batch while nobody waits.

        The page's slider doubles the batch, and an answer needs the job at its batch and at twice
        that, for the largest batch that fits.
        """
        if source.content is None or source.kind == "config":
            with suppress(RuntimeError):  # the server is being stopped
                self._threads.submit(copy_context().run, self._read_ahead, question, source)

    def _read_ahead(self, question: Question, source: RequestJob) -> None:
        from driple.jobs.load import load_job, load_jobs

        def read(texts: Sequence[str]) -> None:
            settings = question.settings or []
            job = load_jobs(texts[0], question.options, settings, forward=True)[0]
            if not job.origin.is_model or job.batch_size is None:
                return
            for size in (4 * job.batch_size, job.batch_size // 2):
                options = replace(question.options, batch_size=max(size, 1))
                if self._num_waiting == 0:
                    load_job(texts[0], options, setting=settings[0], forward=True)

        if question.settings:
            with suppress(DripleError):  # said where it is asked for
                self.in_context([source], read)

    def result(self, question: Question, sources: Sequence[RequestJob]) -> Result:
        """The result of a question, for pages that show more than its JSON."""
        return self.in_context(sources, question.result)

    @property
    def gauges(self) -> dict[str, tuple[str, float]]:
        """What is so now, for metrics."""
        return {
            "driple_jobs_kept": ("Jobs that are kept ready.", len(self.jobs)),
            "driple_answers_kept": ("Answers that are kept.", len(self._answers)),
            "driple_work_kept": ("Long questions, at work or done.", len(self.work)),
            "driple_questions_waiting": ("Questions that run or wait.", self._num_waiting),
        }
