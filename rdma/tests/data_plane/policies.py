"""Reference models of the policies of rdma/native/replacement: what each is to do, as plainly as can be said."""

from abc import ABC, abstractmethod
from collections import deque


class Policy(ABC):
    """Which page leaves next. `touched`: the pages with the accessed bit, which a look clears."""

    def __init__(self, parameter: int) -> None:
        self.parameter = parameter
        self.touched: set[int] = set()

    def accessed(self, page: int) -> bool:
        """Test and clear the accessed bit."""
        was = page in self.touched
        self.touched.discard(page)
        return was

    @abstractmethod
    def admit(self, page: int) -> None:
        """A page is resident now."""

    @abstractmethod
    def forget(self, page: int) -> None:
        """A page is not resident any more."""

    @abstractmethod
    def victim(self) -> int:
        """Choose one; -1: none is resident."""


class Fifo(Policy):
    """The oldest fault first."""

    def __init__(self, parameter: int) -> None:
        super().__init__(parameter)
        self.queue: deque[int] = deque()

    def admit(self, page: int) -> None:
        self.queue.append(page)

    def forget(self, page: int) -> None:
        self.queue.remove(page)

    def victim(self) -> int:
        return self.queue.popleft() if self.queue else -1


class Clock(Fifo):
    """A page with the bit goes behind all others, once in a lap."""

    def victim(self) -> int:
        for _ in range(len(self.queue)):
            page = self.queue.popleft()
            if not self.accessed(page):
                return page
            self.queue.append(page)
        return super().victim()


class Mixed(Fifo):
    """Clock on the oldest `parameter` pages, which keep their places; the next one where all of those have the bit."""

    def victim(self) -> int:
        oldest = list(self.queue)
        chosen = next((page for page in oldest[: self.parameter] if not self.accessed(page)), None)
        if chosen is None and len(oldest) > self.parameter:
            chosen = oldest[self.parameter]
        if chosen is None:
            return super().victim()
        self.queue.remove(chosen)
        return chosen


class S3Fifo(Policy):
    """Small queue (`parameter` percent of what is resident), main queue, ghosts of what the small queue let go."""

    def __init__(self, parameter: int) -> None:
        super().__init__(parameter)
        self.small: deque[int] = deque()
        self.main: deque[int] = deque()
        self.ghosts: deque[int] = deque()

    def admit(self, page: int) -> None:
        if page in self.ghosts:
            self.ghosts.remove(page)
            self.main.append(page)
        else:
            self.small.append(page)

    def forget(self, page: int) -> None:
        (self.small if page in self.small else self.main).remove(page)

    def victim(self) -> int:
        resident = len(self.small) + len(self.main)
        chances = resident
        while resident:
            small = not self.main or len(self.small) * 100 > resident * self.parameter
            page = (self.small if small else self.main).popleft()
            if chances and self.accessed(page):
                chances -= 1
                self.main.append(page)
                continue
            if small:
                self.ghosts.append(page)
                while len(self.ghosts) > len(self.small) + len(self.main) + 1:
                    self.ghosts.popleft()
            return page
        return -1


MODELS: dict[str, type[Policy]] = {"fifo": Fifo, "clock": Clock, "mixed": Mixed, "s3-fifo": S3Fifo}
